"""The table of contents and the pages are the same set. `make docs` says so too, but needs the docs extra."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOP = re.compile(r"^(\w+):", re.MULTILINE)
PAGE = re.compile(r"([\w./-]+\.md)\s*$", re.MULTILINE)


def section(name: str) -> str:
    """A top-level block of mkdocs.yml, as text."""
    text = (ROOT / "mkdocs.yml").read_text()
    starts = [match for match in TOP.finditer(text) if match[1] == name]
    assert len(starts) == 1, f"mkdocs.yml has {len(starts)} top-level blocks called {name}"
    following = TOP.search(text, starts[0].end())
    return text[starts[0].end() : following.start() if following else len(text)]


def listed() -> list[str]:
    return PAGE.findall(section("nav"))


def test_every_page_is_in_the_nav_and_every_entry_is_a_page() -> None:
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert set(listed()) == pages


def test_no_page_is_in_the_nav_twice() -> None:
    assert len(listed()) == len(set(listed()))


def test_a_page_left_out_of_the_nav_and_a_dead_link_are_warned_of() -> None:
    validation = section("validation")
    for check in ("omitted_files", "not_found", "anchors", "unrecognized_links"):
        assert f"{check}: warn" in validation
    assert ".md" not in validation
