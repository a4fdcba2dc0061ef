"""The architecture page and its drawing have every room of the import contract."""

from tests.docs.draw_rooms import FILE, ROOT, drawing, layers


def test_the_drawing_is_the_contract() -> None:
    assert FILE.read_text() == drawing(), "draw it anew: .venv/bin/python -m tests.docs.draw_rooms"


def test_the_table_of_layers_has_every_room() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    table = page.partition("\n## Layers\n")[2].partition("\n## ")[0]
    firsts = " ".join(line.split("|")[1] for line in table.splitlines() if line.startswith("|"))
    assert [room for rooms in layers() for room in rooms if f"`{room}`" not in firsts] == []
