"""What may differ between two runs of the same code: how long a search took, and nothing else."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_DURATION = r"\d[\d.]*(?:ns|us|µs|ms|s|m|h|d)(?:\d+(?:ms|s|m|h))*"

MASKS: Mapping[str, re.Pattern[str]] = {
    "planningSeconds": re.compile(r'("?planningSeconds"?: )\d[\d.e+-]*'),
    "generations in": re.compile(rf"(\b\d[\d,]* generations? in ){_DURATION}"),
    "every assignment tried in": re.compile(
        rf"(\bevery assignment(?: and order)? tried in ){_DURATION}"
    ),
}
"""Name -> what is masked; the first group stays."""

SHOWN = r"\1<masked>"


@dataclass(frozen=True)
class Masked:
    """A text without the times of searches.

    Attributes:
        text: with the masks in it.
        counts: how often each mask was used.
        lines: the lines that a mask has changed, as they were.
    """

    text: str
    counts: Mapping[str, int]
    lines: tuple[str, ...]


def masked(text: str) -> Masked:
    """Mask a text."""
    counts: dict[str, int] = {}
    found = text
    for name, pattern in MASKS.items():
        found, number = pattern.subn(SHOWN, found)
        if number:
            counts[name] = number
    if not counts:
        return Masked(text, {}, ())
    lines = [line for line in text.split("\n") if any(p.search(line) for p in MASKS.values())]
    return Masked(found, counts, tuple(lines))
