"""A drawing: as SVG in a page, or as an image that brings its own styles and its own ground.

Notebooks that are not trusted drop `svg` and `style` but show images, also those that are part of
the page (`data:`). So a notebook gets images only; a report, which is a file, gets SVG, whose parts
say more where the reader points at them.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from kfp_placement.report.markup import NOTHING, TEXT_LIMIT, Markup, number, plain, tag
from kfp_placement.report.palette import colour_rules, fill_rules
from kfp_placement.report.visible import shown

SCOPE = "kfp-drawing"
"""Class of every drawing; each selector of its style sheet starts with it."""

SMALLEST = 0.6
"""Share of its natural size to which a drawing shrinks: its names are 7 pixels high then."""

_MARGIN = 10.0
"""Around an image, where no card is."""


@dataclass(frozen=True)
class Pen:
    """How the parts of a drawing are written.

    Attributes:
        prefix: start of all ids, which keeps them apart from those of other reports on the page.
        tooltips: parts say more where the reader points at them; images cannot.
    """

    prefix: str
    tooltips: bool

    def tooltip(self, words: str) -> Markup:
        """What a part says where the reader points at it."""
        return tag("title", plain(words)) if self.tooltips else NOTHING

    def hatch(self, kind: str) -> str:
        """The fill of conditional or assumed steps."""
        return f"url(#{self.prefix}-{kind})"


@dataclass(frozen=True)
class Drawing:
    """A picture, and what it shows in words.

    Attributes:
        kind: `gantt` or `dag`.
        title, description: what it shows, for those who do not see it.
        width, height: its natural size in pixels.
        parts: what it is made of, in SVG; empty = there is none.
        stretch: up to how many times its natural size it grows to fill its place.
        note: what is summed up or left out, or "".
    """

    kind: str
    title: str
    description: str
    width: float
    height: float
    parts: Sequence[Markup] = ()
    stretch: float = 1.0
    note: str = ""

    @property
    def least(self) -> float:
        """The width to which it shrinks before it has to be scrolled."""
        return self.width * SMALLEST


def inline(drawing: Drawing, pen: Pen) -> Markup:
    """The drawing as an SVG element of a page that has its styles."""
    title, description = f"{pen.prefix}-{drawing.kind}-title", f"{pen.prefix}-{drawing.kind}-desc"
    return tag(
        "svg",
        tag("title", plain(drawing.title), id=title),
        tag("desc", plain(drawing.description), id=description),
        *drawing.parts,
        class_=f"{SCOPE} {drawing.kind}",
        viewBox=f"0 0 {number(drawing.width)} {number(drawing.height)}",
        role="img",
        aria_labelledby=title,
        aria_describedby=description,
        style=_room(drawing, drawing.width),
    )


def image(drawing: Drawing) -> Markup:
    """The drawing as an image that needs nothing around it."""
    width = drawing.width + 2 * _MARGIN
    encoded = base64.b64encode(standalone(drawing).encode("utf-8")).decode("ascii")
    return tag(
        "img",
        alt=shown(f"{drawing.title}. {drawing.description}", TEXT_LIMIT),
        src=f"data:image/svg+xml;base64,{encoded}",
        style=f"display:block;margin:0;{_room(drawing, width)}",
    )


def standalone(drawing: Drawing) -> Markup:
    """The drawing as an SVG file, light or dark as its reader prefers."""
    width, height = drawing.width + 2 * _MARGIN, drawing.height + 2 * _MARGIN
    return tag(
        "svg",
        tag("title", plain(drawing.title)),
        tag("desc", plain(drawing.description)),
        tag("style", Markup(colour_rules(f".{SCOPE}") + f".{SCOPE}{{background:var(--card)}}")),
        tag("style", style_sheet()),
        *drawing.parts,
        class_=f"{SCOPE} {drawing.kind}",
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"{number(-_MARGIN)} {number(-_MARGIN)} {number(width)} {number(height)}",
    )


@cache
def style_sheet() -> Markup:
    """The styles of all drawings; the colours' variables come from around them."""
    file = resources.files("kfp_placement.report").joinpath("drawing.css")
    return Markup(fill_rules(f".{SCOPE}") + compact(file.read_text("utf-8")))


def compact(style: str) -> str:
    """A style sheet of one rule a line without what only its readers need."""
    return "".join(line.strip() for line in style.splitlines())


def _room(drawing: Drawing, width: float) -> str:
    largest = width * drawing.stretch
    return f"width:100%;max-width:{largest:.0f}px;min-width:{width * SMALLEST:.0f}px;height:auto"
