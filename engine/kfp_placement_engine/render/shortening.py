"""Names shortened, alone or side by side, so that no two that differ look alike.

On a terminal they take columns, in a drawing pixels.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from kfp_placement_engine.render.widths import text_width, width
from kfp_placement_engine.views.formatting import clip, shown, visible

_INDEXES = re.compile(r"(?:\[[^\[\]]*\])+$")

_LEAST_COLUMNS = 4
"""Columns in which a shortened name still says something."""

ELLIPSIS = "…"

_Fits = Callable[[str], bool]
"""Function that returns whether text is short enough."""

_MOST_TIMES_LONGER = 4
"""Longest text to try, as a multiple of one that fits: narrow letters take less width."""

_CONTEXT_CHARACTERS = 2
"""Characters kept before the place where names begin to differ."""


def clip_columns(text: str, limit: int) -> str:
    """Shorten visible text in the middle until it takes at most `limit` columns."""
    if width(text) <= limit:
        return text
    characters = min(len(text), limit)
    while characters > 1 and width(clip(text, characters)) > limit:
        characters -= 1
    shorter = clip(text, characters)
    # A single wide character may be all there is, and too much.
    return shorter if width(shorter) <= limit else ELLIPSIS[:limit]


def clip_path(path: str, limit: int) -> str:
    """Shorten a step's visible name: groups go first, their loop indexes and the step itself stay.

    `exit-handler-1.for-loop-1[0].augment` becomes `…for-loop-1[0].augment`, `…[0].augment`.
    """
    if width(path) <= limit:
        return path
    *groups, last = path.split(".")
    matches = [_INDEXES.search(group) for group in groups]
    indexes = [match[0] if match else "" for match in matches]
    for kept in range(1, len(groups) + 1):
        start = "".join(indexes[:kept])
        rest = ".".join(groups[kept:])
        shorter = ELLIPSIS + ".".join(part for part in (start, rest, last) if part)
        if width(shorter) <= limit:
            return shorter
    start = ELLIPSIS + "".join(indexes) + ("." if any(indexes) else "")
    room = limit - width(start)
    if groups and room >= _LEAST_COLUMNS:
        return start + clip_columns(last, room)
    return clip_columns(path, limit)


def distinct_forms(
    texts: Iterable[str], shorten: Callable[[str], str], fits: _Fits
) -> dict[str, str]:
    """Shorten texts where necessary, so that two that differ stay different.

    Most are clipped as usual. Texts that would share a short form keep their beginning instead, or
    else the part from where they differ. Where that does not tell them apart, they are numbered:
    `preprocess-th~2`.

    Args:
        texts: any texts.
        shorten: the usual short form of one, made visible; "" where nothing fits.
        fits: whether there is room for some visible text; for less of it, too.
    """
    short = {text: shorten(text) for text in dict.fromkeys(texts)}
    alike: dict[str, list[str]] = defaultdict(list)
    for text, form in short.items():
        alike[form].append(text)
    taken = {form for form, group in alike.items() if len(group) == 1 or form in group}
    for form, group in alike.items():
        cut = [text for text in group if text != form]
        if not form or len(group) == 1:
            continue
        most = _MOST_TIMES_LONGER * len(form)
        differ_at = max(_same_beginning(min(group), max(group)) - _CONTEXT_CHARACTERS, 0)
        windows = ([_window(text, start, fits, most) for text in cut] for start in (0, differ_at))
        apart = (
            forms
            for forms in windows
            if taken.isdisjoint(forms) and len(set(forms)) == len(forms) and all(map(fits, forms))
        )
        forms = next(apart, None) or _numbered(cut, taken, fits, most)
        taken.update(forms)
        short.update(zip(cut, forms, strict=True))
    return short


def distinct_columns(
    texts: Iterable[str], limit: int, shorten: Callable[[str, int], str] = clip_columns
) -> dict[str, str]:
    """Shorten the texts of a column of a terminal, `limit` columns wide.

    Where only numbers tell texts apart, a number may be wider than `limit`.
    """
    return distinct_forms(
        texts, lambda text: shorten(text, limit), lambda text: width(text) <= limit
    )


def _same_beginning(text: str, other: str) -> int:
    """Return how many first characters two texts share.

    For the smallest and largest of many texts, this is what all of them share.
    """
    same = zip(text, other, strict=False)
    return next((at for at, (a, b) in enumerate(same) if a != b), min(len(text), len(other)))


def _numbered(texts: Sequence[str], taken: set[str], fits: _Fits, most: int) -> list[str]:
    forms: dict[str, None] = {}
    number = 1
    for text in texts:
        form = _longest(text, f"~{number}", fits, most)
        while form in taken or form in forms:
            number += 1
            form = _longest(text, f"~{number}", fits, most)
        forms[form] = None
    return list(forms)


def _window(text: str, start: int, fits: _Fits, most: int) -> str:
    """Return the part of the text that fits, from a character on."""
    before = ELLIPSIS if start else ""
    rest = visible(text[start : start + most])
    whole = before + rest
    if start + most >= len(text) and fits(whole):
        return whole
    return before + _longest(rest, ELLIPSIS, lambda form: fits(before + form), most)


def _longest(text: str, end: str, fits: _Fits, most: int) -> str:
    """Return as much of the beginning of the text as fits before an end.

    Args:
        text: any text.
        end: text that follows that beginning.
        fits: whether there is room.
        most: limit on the characters that are tried, as names may have any length.
    """
    text = visible(text[:most])
    lengths = range(1, len(text) + 1)
    return text[: bisect_left(lengths, True, key=lambda n: not fits(text[:n] + end))] + end


_MOST_CHARACTERS = 200
"""Longest text that a drawing shows."""


def fit(text: str, pixels: float, size: float, *, bold: bool = False) -> str:
    """Shorten text in the middle until it fits; "" where not even a few letters would."""
    text = shown(text, _MOST_CHARACTERS)
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
    """Shorten texts side by side in a drawing: those that differ look different."""
    return distinct_forms(
        texts,
        lambda text: fit(text, pixels, size, bold=bold),
        lambda text: text_width(text, size, bold=bold) <= pixels,
    )
