"""The axis of the time line, and the key to what it shows."""

from collections.abc import Callable, Sequence

from kfp_placement.report import values
from kfp_placement.report.drawing import Pen
from kfp_placement.report.labels import text_width
from kfp_placement.report.markup import Markup, number, plain, tag
from kfp_placement.report.timeline import ticks

_HEADINGS, _LEAST_HEADINGS = 0.16, 140.0
_RIGHT_MARGIN = 14.0
_TICK_PIXELS = 110.0
"""A tick for this many pixels, at most."""

_KEY_SIZE = 11.0
_KEY_ROW = 20.0
_SWATCH = 22.0
_KEY_GAP = 18.0


class Scale:
    """Seconds to pixels: `left` is time zero, `end` is at the right edge.

    `written` is how a moment is written, and `rounded` one of the axis.
    """

    def __init__(
        self,
        end: float,
        width: float,
        written: Callable[[float | None], str] = values.duration,
        rounded: Callable[[float], str] = values.duration,
    ) -> None:
        self.written, self.rounded = written, rounded
        self.end = end if end > 0 else 1.0
        self.width = width
        self.left = max(_LEAST_HEADINGS, width * _HEADINGS)
        self.right = width - _RIGHT_MARGIN

    def x(self, seconds: float) -> float:
        """The coordinate of a time."""
        return self.left + self.pixels(min(max(seconds, 0.0), self.end))

    def pixels(self, seconds: float) -> float:
        """The length of a time."""
        return (self.right - self.left) * seconds / self.end


def axis(scale: Scale, top: float, bottom: float) -> list[Markup]:
    """Round times above a line each."""
    parts = []
    count = int((scale.right - scale.left) / _TICK_PIXELS)
    for second in ticks(scale.end, count):
        x = scale.x(second)
        anchor = "end" if x > scale.right - 20 else "middle"
        line = f"M{number(x)} {number(top - 6)}V{number(bottom)}"
        parts.append(tag("path", d=line, class_="grid"))
        label = plain(scale.rounded(second))
        parts.append(tag("text", label, x=x, y=top - 12, text_anchor=anchor, class_="tick"))
    return parts


def bound_line(seconds: float, scale: Scale, top: float, bottom: float) -> list[Markup]:
    """Before when no plan ends."""
    if not 0 < seconds <= scale.end:
        return []
    x = scale.x(seconds)
    anchor = "end" if x > (scale.left + scale.right) / 2 else "start"
    label = plain(f"no plan ends before {values.duration(seconds)} (lower bound)")
    return [
        tag("path", d=f"M{number(x)} {number(top - 6)}V{number(bottom + 6)}", class_="bound"),
        tag("text", label, x=x, y=bottom + 19, text_anchor=anchor, class_="tick"),
    ]


def whisker(low: float, typical: float, high: float, y: float) -> Markup:
    """A range, with a mark at its ends and at what is typical."""
    line = f"M{number(low)} {number(y)}H{number(high)}"
    marks = "".join(f"M{number(x)} {number(y - 2.5)}v5" for x in (low, typical, high))
    return tag("path", d=line + marks, class_="whisker")


def key(items: Sequence[tuple[str, str]], width: float, pen: Pen) -> tuple[list[Markup], float]:
    """What the shades mean, in as many rows as it takes; also their height."""
    parts: list[Markup] = []
    x, y = 1.0, 0.0
    for css_class, words in items:
        taken = _SWATCH + 7 + text_width(words, _KEY_SIZE)
        if x > 1.0 and x + taken > width:
            x, y = 1.0, y + _KEY_ROW
        parts += _swatch(css_class, x, y + 2, pen)
        at = x + _SWATCH + 7
        parts.append(tag("text", plain(words), x=at, y=y + 12, class_="key"))
        x += taken + _KEY_GAP
    return [tag("g", *parts, class_="n-key")], y + _KEY_ROW


def _swatch(css_class: str, x: float, y: float, pen: Pen) -> list[Markup]:
    if css_class == "driver":
        return [tag("rect", x=x, y=y + 4, width=_SWATCH, height=5.0, class_="driver")]
    if css_class == "whisker":
        return [whisker(x, x + _SWATCH / 2, x + _SWATCH, y + 6)]
    room = {"x": x, "y": y, "width": _SWATCH, "height": 12.0, "rx": 2.0}
    if css_class == "load":
        return [tag("rect", class_="load", **room)]
    if css_class == "critical":
        return [tag("rect", class_="outline critical", **room)]
    shade = css_class if css_class in ("pull", "transfer", "run") else "run"
    parts = [tag("rect", class_=shade, **room)]
    if shade != css_class:
        parts.append(tag("rect", fill=pen.hatch(css_class), **room))
    return [*parts, tag("rect", class_="outline", **room)]
