"""HTML and SVG without unescaped text: mypy tells `Markup` from `str`."""

import html
import re
from collections.abc import Iterable
from typing import NewType

from kfp_placement.report.visible import shown

Markup = NewType("Markup", str)
"""Text that may be put into a document unchanged."""

NOTHING = Markup("")

NAME_LIMIT = 120
"""Characters shown of a name; Kubernetes' own names end at 63 or 253."""

TEXT_LIMIT = 600
"""Characters shown of a sentence."""

BREAK = Markup("<br>\n")
"""A new line, also in the text of a document whose styles and elements were taken away."""

_VOID = frozenset({"meta", "br", "hr", "wbr", "img"})
_SHAPES = frozenset({"rect", "path"})
_BLOCKS = frozenset(
    {"h1", "h2", "h3", "h4", "p", "li", "caption", "th", "td", "section", "header", "summary"}
)
"""Followed by a line break: where elements are taken away, words must not run into each other."""

_LONG_WORD = re.compile(r"[^\s-]{21,}")
_LONG_IN_NAME = re.compile(r"[^\s-]{11,}")
"""What a browser never breaks on its own, and what may be too long for a narrow cell."""

_PIECE = re.compile(r"[^._:/]{1,5}[._:/]?|[._:/]")


def plain(value: str, limit: int = TEXT_LIMIT) -> Markup:
    """Anybody's text: shortened, control characters made visible, HTML characters escaped."""
    return Markup(html.escape(shown(value, limit), quote=True))


def text(value: str, limit: int = TEXT_LIMIT) -> Markup:
    """`plain` text for HTML: where a word is too long for its place, it may break.

    Places to break are in the text: notebooks that are not trusted drop the style for it.
    """
    return _breakable(shown(value, limit), _LONG_WORD)


def name(value: str) -> Markup:
    """Anybody's name in HTML: one that is written from right to left leaves the rest in order."""
    breakable = _breakable(shown(value, NAME_LIMIT), _LONG_IN_NAME)
    return breakable if value.isascii() else tag("bdi", breakable)


def _breakable(words: str, long: re.Pattern[str]) -> Markup:
    pieces, end = [], 0
    for run in long.finditer(words):
        pieces.append(html.escape(words[end : run.start()]))
        pieces.append("<wbr>".join(map(html.escape, _PIECE.findall(run[0]))))
        end = run.end()
    return Markup("".join([*pieces, html.escape(words[end:])]))


def tag(kind: str, *children: Markup, **attributes: str | float | None) -> Markup:
    """An element; `None` attributes are left out, `_` in names becomes `-`, `class_` is `class`."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if kind in _VOID:
        return Markup(f"<{kind}{written}>")
    if kind in _SHAPES and not any(children):
        return Markup(f"<{kind}{written}/>")
    end = "\n" if kind in _BLOCKS else ""
    return Markup(f"<{kind}{written}>{''.join(children)}</{kind}>{end}")


def join(parts: Iterable[Markup], separator: str = "") -> Markup:
    """Pieces put one after another; the separator is plain text."""
    return Markup(html.escape(separator).join(parts))


def number(value: float) -> str:
    """A coordinate, with a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


def _attribute(value: str | float) -> str:
    if isinstance(value, str):
        return html.escape(value, quote=True)
    return number(value)
