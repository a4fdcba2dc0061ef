"""matrix-native-python: the product of two matrices, in plain Python."""

from typing import Any


def handler(event: dict[str, Any]) -> dict[str, Any]:
    columns = list(zip(*event["b"], strict=True))
    return {
        "product": [[sum(x * y for x, y in zip(row, column, strict=True)) for column in columns] for row in event["a"]]
    }
