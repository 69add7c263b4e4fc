"""HTML and SVG without unescaped text: mypy tells `Markup` from `str`."""

import html
from collections.abc import Iterable
from typing import NewType

from kfp_placement.report.visible import shown

Markup = NewType("Markup", str)
"""Text that may stand in a document as it is."""

NOTHING = Markup("")

NAME_LIMIT = 120
"""Characters shown of a name; Kubernetes' own names end at 63 or 253."""

TEXT_LIMIT = 600
"""Characters shown of a sentence."""

_VOID = frozenset({"meta", "br", "hr", "wbr"})


def text(value: str, limit: int = TEXT_LIMIT) -> Markup:
    """Anybody's text: shortened, control characters made visible, HTML characters escaped."""
    return Markup(html.escape(shown(value, limit), quote=True))


def name(value: str) -> Markup:
    """Anybody's name."""
    return text(value, NAME_LIMIT)


def tag(kind: str, *children: Markup, **attributes: str | float | None) -> Markup:
    """An element; `None` attributes are left out, `_` in names becomes `-`, `class_` is `class`."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if kind in _VOID:
        return Markup(f"<{kind}{written}>")
    return Markup(f"<{kind}{written}>{''.join(children)}</{kind}>")


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
