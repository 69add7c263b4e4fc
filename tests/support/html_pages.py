"""HTML and SVG taken apart, to see what a browser would see."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "wbr", "link", "img", "input"}


@dataclass
class ParsedPage:
    """Elements and text of a page.

    Attributes:
        elements: tag and attributes, in order.
        text: all text outside style elements.
        styles: content of style elements.
        unbalanced: tags that were closed wrongly or never.
    """

    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    styles: list[str] = field(default_factory=list)
    unbalanced: list[str] = field(default_factory=list)

    def all(self, tag: str) -> list[dict[str, str]]:
        """Attributes of all elements of that kind."""
        return [attributes for kind, attributes in self.elements if kind == tag]

    @property
    def ids(self) -> list[str]:
        """All ids, also repeated ones."""
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = ParsedPage()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.page.elements.append((tag, {key: value or "" for key, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.page.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        where = self.page.styles if self.open and self.open[-1] == "style" else self.page.text
        where.append(data)


def parse_page(source: str) -> ParsedPage:
    """Take a page apart."""
    parser = _Parser()
    parser.feed(source)
    parser.close()
    parser.page.unbalanced += parser.open
    return parser.page


def selectors(style: str) -> list[str]:
    """All selectors of a style sheet, also those inside `@media`."""
    style = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    flat = re.sub(r"@media[^{]*\{((?:[^{}]*\{[^{}]*\})*)\s*\}", r"\1", style)
    heads = re.findall(r"([^{}]+)\{[^{}]*\}", flat)
    return [selector.strip() for head in heads for selector in head.split(",")]
