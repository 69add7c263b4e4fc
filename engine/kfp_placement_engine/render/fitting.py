"""Labels that fit the places they have in a drawing, measured with common fonts."""

from collections.abc import Iterable

from kfp_placement_engine.render.shortening import distinct
from kfp_placement_engine.render.terminal import width
from kfp_placement_engine.views.formatting import clip, shown

_LONGEST = 200

# Shares of the font size, of the widest of the common sans-serif fonts (DejaVu Sans, Verdana).
_NARROW = frozenset("iljtfrI.,:;|!'`()[]{}/\\- \"")
_BROAD = frozenset("mwMW@%&")
_NARROW_SHARE, _BROAD_SHARE, _CAPITAL_SHARE, _OTHER_SHARE = 0.42, 0.98, 0.74, 0.65
_WIDE_SHARE = 1.0
_BOLD = 1.08


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Pixels that text takes at most in common fonts."""
    total = sum(map(_share, text)) * size
    return total * _BOLD if bold else total


def fit(text: str, pixels: float, size: float, *, bold: bool = False) -> str:
    """Shorten text in the middle until it fits; "" where not even a few letters would."""
    text = shown(text, _LONGEST)
    if text_width(text, size, bold=bold) <= pixels:
        return text
    for length in range(len(text) - 1, 3, -1):
        shorter = clip(text, length)
        if text_width(shorter, size, bold=bold) <= pixels:
            return shorter
    return ""


def fit_all(
    texts: Iterable[str], pixels: float, size: float, *, bold: bool = False
) -> dict[str, str]:
    """The same for texts side by side: those that differ look different."""
    return distinct(
        texts,
        lambda text: fit(text, pixels, size, bold=bold),
        lambda text: text_width(text, size, bold=bold) <= pixels,
    )


def _share(char: str) -> float:
    if char in _NARROW:
        return _NARROW_SHARE
    if char in _BROAD:
        return _BROAD_SHARE
    if char.isascii():
        return _CAPITAL_SHARE if char.isupper() else _OTHER_SHARE
    return _WIDE_SHARE if width(char) > 1 or char == "…" else _CAPITAL_SHARE
