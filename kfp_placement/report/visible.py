"""Text from files made safe and narrow enough to show.

Step names, reasons and warnings carry what strangers wrote. Nothing that a terminal or a browser
would act on (escape sequences, direction marks, line breaks) gets through as itself.
"""

import re
import unicodedata

_INDEXES = re.compile(r"(?:\[[^\[\]]*\])+$")

_FEW = 4
"""Columns in which a shortened name still says something."""


def visible(text: str) -> str:
    r"""Replace everything unprintable by its escape: ESC becomes `\x1b`, a line break `\n`."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def shown(text: str, limit: int) -> str:
    """`visible` text of at most `limit` characters, shortened in the middle.

    Loop indexes are in the middle or at the end of a name and iterations differ only there, so
    the end is kept as well as the start.
    """
    # Cut before escaping: a name of megabytes must not be escaped first.
    return clip(visible(text if len(text) <= 4 * limit else clip(text, 2 * limit)), limit)


def clip(text: str, limit: int) -> str:
    """Shorten to at most `limit` characters, in the middle."""
    if len(text) <= limit:
        return text
    if limit <= 1:
        return "…"[:limit]
    tail = (limit - 1) // 2
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"


def width(text: str) -> int:
    """Columns that visible text takes on a terminal: wide characters take two, accents none."""
    if text.isascii():
        return len(text)
    return sum(map(_char_width, text))


def clip_columns(text: str, limit: int) -> str:
    """Shorten visible text in the middle until it takes at most `limit` columns."""
    if width(text) <= limit:
        return text
    characters = min(len(text), limit)
    while characters > 1 and width(clip(text, characters)) > limit:
        characters -= 1
    shorter = clip(text, characters)
    # A single wide character may be all there is, and too much.
    return shorter if width(shorter) <= limit else "…"[:limit]


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
        shorter = "…" + ".".join(part for part in (start, rest, last) if part)
        if width(shorter) <= limit:
            return shorter
    start = "…" + "".join(indexes) + ("." if any(indexes) else "")
    room = limit - width(start)
    return (
        start + clip_columns(last, room) if groups and room >= _FEW else clip_columns(path, limit)
    )


def _char_width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
