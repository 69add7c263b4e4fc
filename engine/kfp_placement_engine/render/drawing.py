"""A drawing: as SVG in a page, or as an image that brings its own styles and its own ground."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from markupsafe import Markup

from kfp_placement_engine.render.environment import read_style, template
from kfp_placement_engine.render.palette import colour_rules, fill_rules
from kfp_placement_engine.views.formatting import shown

_SCOPE = ".kfp-drawing"
"""Selector of every drawing, with which each selector of its style sheet starts."""

_SMALLEST = 0.6
"""Share of its natural size to which a drawing shrinks: its names are 7 pixels high then."""

_MARGIN = 10.0
"""Around an image, where no card is."""

_DESCRIPTION_CHARACTERS = 600


@dataclass(frozen=True)
class Drawing:
    """A picture, and what it shows in words.

    Attributes:
        kind: `time_line` or `graph`, after which its template is named.
        name, description: name and description for readers who do not see it.
        width, height: natural size in pixels.
        shapes: shapes for the template; empty = there is no picture.
        stretch: largest factor by which it grows to fill its place.
        notes: remarks on parts that are summed up or left out.
    """

    kind: str
    name: str
    description: str = ""
    width: float = 0.0
    height: float = 0.0
    shapes: Mapping[str, object] | None = None
    stretch: float = 1.0
    notes: Sequence[str] = ()

    @property
    def least_width(self) -> float:
        """The width to which it shrinks before it has to be scrolled."""
        return self.width * _SMALLEST

    def inline(self) -> Markup:
        """Return the drawing as an SVG element of a page that has its styles."""
        return self._svg(tooltips=True, room=self._room(self.width))

    def image(self) -> Markup:
        """Return the drawing as an image that needs nothing around it."""
        encoded = base64.b64encode(self.standalone().encode("utf-8")).decode("ascii")
        words = shown(f"{self.name}. {self.description}", _DESCRIPTION_CHARACTERS)
        return Markup('<img alt="{}" src="data:image/svg+xml;base64,{}" style="{}">').format(
            words, encoded, f"display:block;margin:0;{self._room(self.width + 2 * _MARGIN)}"
        )

    def standalone(self) -> Markup:
        """Return the drawing as an SVG file, light or dark as its reader prefers."""
        ground = f"{_SCOPE}{{background:var(--card)}}"
        style = Markup(colour_rules(_SCOPE) + ground + drawing_style())
        return self._svg(tooltips=False, style=style, margin=_MARGIN)

    def _svg(self, **how: object) -> Markup:
        source = template("drawing.svg.j2")
        return Markup(source.render(drawing=self, **{"margin": 0.0, **how}, **(self.shapes or {})))

    def _room(self, width: float) -> str:
        largest, least = width * self.stretch, width * _SMALLEST
        return f"width:100%;max-width:{largest:.0f}px;min-width:{least:.0f}px;height:auto"


@cache
def drawing_style() -> Markup:
    """Return the styles of all drawings; the colours' variables come from around them."""
    return Markup(fill_rules(_SCOPE) + read_style("drawing.css"))
