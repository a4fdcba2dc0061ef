"""A list of articles and the page that shows them.

Owns the articles. Some names have signs that mean something in HTML: a page that shows them must escape them.
"""

from html.parser import HTMLParser
from typing import Any, Final

from wattloom.suite.families.chance import Chance, expect

ARTICLES: Final = 100
NAMES: Final = ("lamp", "heater", "fan", "<b>bold</b> kettle", "pump & hose", 'tube 2"', "motor's oil", "coil >= 3")
TAGS: Final = ("new", "sale", "green", "loud", "R&D")


def event(seed: int) -> dict[str, Any]:
    chance = Chance("html", seed)
    names, prices = chance.pick(NAMES, ARTICLES), chance.below(100_000, ARTICLES)
    articles = [
        {"name": f"{name} {at}", "price": f"{price / 100:.2f}", "tags": chance.pick(TAGS, 3)}
        for at, (name, price) in enumerate(zip(names, prices, strict=True))
    ]
    return {"title": f"Catalogue {seed} <all>", "user": chance.pick(("Ada", "Grace", "Edsger & co"), 1)[0]} | {
        "articles": articles
    }


def check(given: dict[str, Any], result: Any) -> None:
    """Read as a browser reads it, the page has a title, a greeting, and a row for each article."""
    page = _Page()
    page.feed(result["html"])
    page.close()
    expect(page.texts.get("title", "") == given["title"], f"the title is {page.texts.get('title')!r}")
    expect(given["user"] in page.texts.get("p", ""), "the user is not greeted")
    wanted = [[each["name"], each["price"], " ".join(each["tags"])] for each in given["articles"]]
    expect(len(page.rows) == len(wanted), f"the page has {len(page.rows)} rows, not {len(wanted)}")
    for found, right in zip(page.rows, wanted, strict=True):
        expect(found == right, f"a row is {found}, not {right}")


class _Page(HTMLParser):
    """The texts of a page by their element, and the cells of each row of its table."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: dict[str, str] = {}
        self.rows: list[list[str]] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        expect(tag in ("html", "head", "title", "meta", "body", "p", "table", "tr", "td"), f"it has an element <{tag}>")
        if tag == "meta":
            return
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        expect(bool(self._open) and self._open.pop() == tag, f"</{tag}> ends something else")
        if tag == "td":
            self.rows[-1][-1] = " ".join(self.rows[-1][-1].split())

    def handle_data(self, data: str) -> None:
        if not self._open:
            return
        if self._open[-1] == "td":
            self.rows[-1][-1] += data
        else:
            self.texts[self._open[-1]] = self.texts.get(self._open[-1], "") + data
