"""HTML and SVG taken apart, to see what a browser would see."""

import base64
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "wbr", "link", "img", "input"}

WITHIN_WORDS = {"wbr", "bdi"}
"""Elements that make neither a new word nor a new line."""

_DATA_IMAGE = "data:image/svg+xml;base64,"


@dataclass
class ParsedPage:
    """Elements and text of a page.

    Attributes:
        elements: tag and attributes, in order.
        text: all text outside style elements.
        prose: text that is outside drawings, too.
        styles: content of style elements.
        unbalanced: tags that were closed wrongly or never.
    """

    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    prose: list[str] = field(default_factory=list)
    styles: list[str] = field(default_factory=list)
    unbalanced: list[str] = field(default_factory=list)

    def all(self, tag: str) -> list[dict[str, str]]:
        """Attributes of all elements of that kind."""
        return [attributes for kind, attributes in self.elements if kind == tag]

    @property
    def structure(self) -> list[str]:
        """Kinds of all elements but those that names may bring along."""
        return [kind for kind, _ in self.elements if kind not in WITHIN_WORDS]

    @property
    def drawings(self) -> list["ParsedPage"]:
        """The images that are part of the page."""
        return [
            parse_page(base64.b64decode(image["src"].removeprefix(_DATA_IMAGE)).decode("utf-8"))
            for image in self.all("img")
            if image["src"].startswith(_DATA_IMAGE)
        ]

    @property
    def ids(self) -> list[str]:
        """Return all ids, also repeated ones."""
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = ParsedPage()
        self.open: list[str] = []
        self.goes_on = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.page.elements.append((tag, {key: value or "" for key, value in attrs}))
        self.goes_on = tag == "wbr"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.goes_on = False
        if not self.open or self.open.pop() != tag:
            self.page.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.page.styles.append(data)
            return
        for texts in (self.page.text, *([] if "svg" in self.open else [self.page.prose])):
            if self.goes_on and texts:
                texts[-1] += data
            else:
                texts.append(data)


def parse_page(source: str) -> ParsedPage:
    """Take a page apart."""
    parser = _Parser()
    parser.feed(source)
    parser.close()
    parser.page.unbalanced += parser.open
    return parser.page


def selectors(style: str) -> list[str]:
    """Return all selectors of a style sheet, also those inside `@media`."""
    style = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    flat = re.sub(r"@media[^{]*\{((?:[^{}]*\{[^{}]*\})*)\s*\}", r"\1", style)
    heads = re.findall(r"([^{}]+)\{[^{}]*\}", flat)
    return [selector.strip() for head in heads for selector in head.split(",")]
