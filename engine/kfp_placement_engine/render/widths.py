"""Widths of text: in columns of a terminal, and in pixels with common fonts."""

import unicodedata

_NARROW = frozenset("iljtfrI.,:;|!'`()[]{}/\\- \"")
_BROAD = frozenset("mwMW@%&")
_NARROW_SHARE, _BROAD_SHARE, _CAPITAL_SHARE, _OTHER_SHARE, _WIDE_SHARE = 0.42, 0.98, 0.74, 0.65, 1.0
"""Widths of letters as shares of the font size, in the widest of the common fonts (DejaVu Sans)."""

_BOLD = 1.08
"""Factor by which bold letters are wider."""


def width(text: str) -> int:
    """Return the columns of visible text on a terminal: wide characters take two, accents none."""
    if text.isascii():
        return len(text)
    return sum(map(_columns_of, text))


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the pixels that text takes at most in common fonts."""
    total = sum(map(_share_of, text)) * size
    return total * _BOLD if bold else total


def _columns_of(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _share_of(char: str) -> float:
    if char in _NARROW:
        return _NARROW_SHARE
    if char in _BROAD:
        return _BROAD_SHARE
    if char.isascii():
        return _CAPITAL_SHARE if char.isupper() else _OTHER_SHARE
    return _WIDE_SHARE if width(char) > 1 or char == "…" else _CAPITAL_SHARE
