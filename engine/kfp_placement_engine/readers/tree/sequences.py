"""Numbers as Argo's withSequence makes them (`expandSequence`), in the format of Go's `fmt`."""

import re
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from kfp_placement_engine.readers.tree.expressions import Composed, Constant, Scope
from kfp_placement_engine.readers.tree.values import UNKNOWN, KnownValue, Value, gapless, known_text

MAX_SEQUENCE = 100_000
"""Length to which a sequence is cut; runs are limited to far fewer steps."""

ABSENT: Final = Constant(None)

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_VERB = re.compile(r"%(?:(%)|([-+ 0]*[0-9]{0,3}[doxX])|([-0]*[0-9]{0,3})v|([sfegt]))?")


@dataclass(frozen=True)
class NumberSequence(Composed):
    """Numbers from a start to an end, or a count of them, as text in a format.

    These are its parts, in this order. A number that Argo cannot read is the value instead.
    """

    @override
    def evaluate(self, scope: Scope) -> Value:
        """Return the value in a scope."""
        *numbers, form = (gapless(known_text(part.evaluate(scope))) for part in self.parts)
        for text, part in zip(numbers, self.parts, strict=False):
            if text is None:
                return UNKNOWN
            if part != ABSENT and not _WHOLE_NUMBER.fullmatch(text):
                return KnownValue(text)
        start, end, count = (int(text or "0") for text in numbers)
        if self.parts[1] == ABSENT:
            end = start + count - 1
            if count == 0:
                return KnownValue([])
        step = 1 if start <= end else -1
        made = range(start, end + step, step)[:MAX_SEQUENCE]
        pattern = None if form is None else _as_in_python(form or "%d")
        return KnownValue([UNKNOWN if pattern is None else pattern % number for number in made])


def _as_in_python(form: str) -> str | None:
    """Return Python's format of one number for that of Go, or None if it is not computed here."""
    count = 0
    parts: list[str] = []
    end = 0
    for match in _VERB.finditer(form):
        percent, number, plain, wrong = match.groups()
        parts.append(form[end : match.start()])
        end = match.end()
        if percent:
            parts.append("%%")
            continue
        count += 1
        if plain is not None:
            number = f"{plain}d"
        parts.append(f"%{number}" if number else f"%%!{wrong}(int=%d)")
        if count > 1 or not (number or wrong):
            return None
    # The text is then read as JSON.
    if '"' in form or "\\" in form:
        return None
    return "".join((*parts, form[end:], "" if count else "%%!(EXTRA int=%d)"))
