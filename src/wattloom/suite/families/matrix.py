"""Two square matrices and their product.

Owns the matrices. Their numbers are 1/1024ths, so that every order of adding gives the same sum to the last bit.
"""

from typing import Any, Final

from wattloom.suite.families.chance import Chance, expect

SIZE: Final = 30


def event(seed: int) -> dict[str, Any]:
    chance = Chance("matrix", seed)
    return {"a": _matrix(chance), "b": _matrix(chance)}


def _matrix(chance: Chance) -> list[list[float]]:
    return [[each / 1024 for each in chance.below(2048, SIZE)] for _ in range(SIZE)]


def check(given: dict[str, Any], result: Any) -> None:
    """Against NumPy, and by the definition: NumPy is one of those that are checked."""
    import numpy as np

    found = np.asarray(result["product"])
    expect(found.shape == (SIZE, SIZE), f"the product is {found.shape}, not {SIZE}x{SIZE}")
    a, b = given["a"], given["b"]
    expect(bool((found == np.array(a) @ np.array(b)).all()), "it is not the product of the two matrices")
    last = sum(a[-1][at] * b[at][-1] for at in range(SIZE))
    expect(float(found[-1][-1]) == last, f"its last number is {found[-1][-1]}, not {last}")
