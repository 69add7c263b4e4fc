"""Names shortened side by side, so that no two that differ look alike."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from kfp_placement_engine.render.terminal import clip_columns, width

ELLIPSIS = "…"

_WIDER = 4
"""Times as many characters as of one text may fit of another: letters differ in width."""

_CONTEXT = 2
"""Characters kept before the place where names begin to differ."""


def distinct(
    texts: Iterable[str], clip: Callable[[str], str], fits: Callable[[str], bool]
) -> dict[str, str]:
    """Each text, shortened where it has to be; two that differ stay different.

    Most are clipped as usual. Where that makes some of them the same, more of their ends or of
    their beginnings is kept, or the middle from where they differ; where nothing of this tells them
    apart, they are numbered: `preprocess-th~2`.

    Args:
        texts: visible texts.
        clip: the usual short form of one; the text itself where it fits, "" where nothing does.
        fits: whether there is room for some text; for less of it, too.
    """
    short = {text: clip(text) for text in dict.fromkeys(texts)}
    counts = Counter(short.values())
    alike: dict[str, list[str]] = {}
    for text, form in short.items():
        if form and form != text and counts[form] > 1:
            alike.setdefault(form, []).append(text)
    taken = {form for text, form in short.items() if text not in alike.get(form, ())}
    for group in alike.values():
        forms = _told_apart(group, taken, fits) or _numbered(group, taken, fits)
        taken.update(forms)
        short.update(zip(group, forms, strict=True))
    return short


def distinct_columns(
    texts: Iterable[str], limit: int, clip: Callable[[str, int], str] = clip_columns
) -> dict[str, str]:
    """The same for a column of a terminal, `limit` columns wide."""
    return distinct(texts, lambda text: clip(text, limit), lambda text: width(text) <= limit)


def _told_apart(
    texts: Sequence[str], taken: set[str], fits: Callable[[str], bool]
) -> list[str] | None:
    """Parts of the texts that tell them from each other and from what is taken, if there are."""
    room = len(_longest(texts[0], "", fits, len(texts[0])))
    middle, most = room // 2, _WIDER * room
    same = _same_beginning(min(texts), max(texts))
    cuts: list[Callable[[str], str]] = [
        *(
            lambda text, tail=tail: _ends(text, tail, fits, most)
            for tail in sorted(range(room), key=lambda tail: abs(tail - middle))
        ),
        lambda text: _window(text, max(same - _CONTEXT, 1), fits, most),
    ]
    return next((forms for cut in cuts if (forms := _all_new(texts, cut, taken))), None)


def _same_beginning(text: str, other: str) -> int:
    """Characters until two texts differ; of the first and the last of many, until any do."""
    same = zip(text, other, strict=False)
    return next((at for at, (a, b) in enumerate(same) if a != b), min(len(text), len(other)))


def _all_new(texts: Sequence[str], cut: Callable[[str], str], taken: set[str]) -> list[str] | None:
    """The texts cut, or None as soon as two are the same, or one is nothing."""
    forms: dict[str, None] = {}
    for text in texts:
        form = cut(text)
        if not form or form in forms or form in taken:
            return None
        forms[form] = None
    return list(forms)


def _numbered(texts: Sequence[str], taken: set[str], fits: Callable[[str], bool]) -> list[str]:
    forms: list[str] = []
    used, number = set(taken), 1
    most = _WIDER * len(_longest(texts[0], "", fits, len(texts[0])))
    for text in texts:
        form = _longest(text, f"~{number}", fits, most)
        while form in used:
            number += 1
            form = _longest(text, f"~{number}", fits, most)
        used.add(form)
        forms.append(form)
    return forms


def _ends(text: str, tail: int, fits: Callable[[str], bool], most: int) -> str:
    """As much of the beginning as fits before this many characters of the end; "" for none."""
    form = _longest(text, ELLIPSIS + text[len(text) - tail :], fits, most)
    return form if fits(form) else ""


def _window(text: str, start: int, fits: Callable[[str], bool], most: int) -> str:
    """What fits from the middle of the text."""
    rest = text[start : start + most]
    form = ELLIPSIS + _longest(rest, ELLIPSIS, lambda form: fits(ELLIPSIS + form), most)
    return form if fits(form) else ""


def _longest(text: str, end: str, fits: Callable[[str], bool], most: int) -> str:
    """As much of the beginning of the text as fits before an end, by bisection.

    Args:
        text: the text.
        end: follows that beginning.
        fits: whether there is room.
        most: no more characters are tried: names may be of any length.
    """
    low, high = 0, min(len(text), most)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(text[:middle] + end):
            low = middle
        else:
            high = middle - 1
    return text[:low] + end
