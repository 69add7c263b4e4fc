"""Names shortened side by side, so that no two that differ look alike."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from kfp_placement_engine.render.terminal import clip_columns, width
from kfp_placement_engine.views.formatting import visible

ELLIPSIS = "…"

_WIDER = 4
"""Times as many characters as of one text may fit of another: letters differ in width."""

_CONTEXT = 2
"""Characters kept before the place where names begin to differ."""


def distinct(
    texts: Iterable[str], clip: Callable[[str], str], fits: Callable[[str], bool]
) -> dict[str, str]:
    """Each text, shortened where it has to be; two that differ stay different.

    Most are clipped as usual. Of those that this makes the same the beginning is kept, or what fits
    from where they begin to differ. Where that does not tell them apart, they are numbered:
    `preprocess-th~2`.

    Args:
        texts: any texts.
        clip: the usual short form of one, made visible; "" where nothing fits.
        fits: whether there is room for some visible text; for less of it, too.
    """
    short = {text: clip(text) for text in dict.fromkeys(texts)}
    alike: dict[str, list[str]] = defaultdict(list)
    for text, form in short.items():
        alike[form].append(text)
    taken = {form for form, group in alike.items() if len(group) == 1 or form in group}
    for form, group in alike.items():
        cut = [text for text in group if text != form]
        if not form or len(group) == 1:
            continue
        most = _WIDER * len(form)
        differ_at = max(_same_beginning(min(group), max(group)) - _CONTEXT, 0)
        windows = ([_window(text, start, fits, most) for text in cut] for start in (0, differ_at))
        apart = (
            forms
            for forms in windows
            if len(taken.union(forms)) == len(taken) + len(forms) and all(map(fits, forms))
        )
        forms = next(apart, None) or _numbered(cut, taken, fits, most)
        taken.update(forms)
        short.update(zip(cut, forms, strict=True))
    return short


def distinct_columns(
    texts: Iterable[str], limit: int, clip: Callable[[str, int], str] = clip_columns
) -> dict[str, str]:
    """The same for a column of a terminal, `limit` columns wide."""
    return distinct(texts, lambda text: clip(text, limit), lambda text: width(text) <= limit)


def _same_beginning(text: str, other: str) -> int:
    """Characters until two texts differ; of the first and the last of many, until any do."""
    same = zip(text, other, strict=False)
    return next((at for at, (a, b) in enumerate(same) if a != b), min(len(text), len(other)))


def _numbered(
    texts: Sequence[str], taken: set[str], fits: Callable[[str], bool], most: int
) -> list[str]:
    forms: dict[str, None] = {}
    number = 1
    for text in texts:
        form = _longest(text, f"~{number}", fits, most)
        while form in taken or form in forms:
            number += 1
            form = _longest(text, f"~{number}", fits, most)
        forms[form] = None
    return list(forms)


def _window(text: str, start: int, fits: Callable[[str], bool], most: int) -> str:
    """What fits from this character of the text on."""
    before = ELLIPSIS if start else ""
    rest = visible(text[start : start + most])
    whole = before + rest
    if start + most >= len(text) and fits(whole):
        return whole
    return before + _longest(rest, ELLIPSIS, lambda form: fits(before + form), most)


def _longest(text: str, end: str, fits: Callable[[str], bool], most: int) -> str:
    """As much of the beginning of the text as fits before an end.

    Args:
        text: any text.
        end: follows that beginning.
        fits: whether there is room.
        most: no more characters are tried: names may be of any length.
    """
    text = visible(text[:most])
    lengths = range(1, len(text) + 1)
    return text[: bisect_left(lengths, True, key=lambda n: not fits(text[:n] + end))] + end
