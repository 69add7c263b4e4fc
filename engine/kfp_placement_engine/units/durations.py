"""Durations and round trips: reading them from text, and all forms in which they are written.

In code, durations are seconds and round trips are milliseconds. Forms for programs can be read
again. They never change, because annotations, resources and files of older versions contain them.
Forms for people have as many digits as their place needs.
"""

import math
import re
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.units.quantities import short_text, shown_value

_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?|\.\d+)(ns|us|µs|μs|ms|s|m|h|d)", re.ASCII)
_DURATION_UNITS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}
_WORDED_PART = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*([a-zµμ]+)\s*", re.ASCII | re.IGNORECASE)
_WORDS = {
    "msec": "ms",
    "millisecond": "ms",
    "sec": "s",
    "second": "s",
    "min": "m",
    "minute": "m",
    "hr": "h",
    "hour": "h",
    "day": "d",
}
"""Unit as people write it, with or without a final s -> unit as Go writes it."""
_PLAIN_NUMBER = re.compile(r"^(?:\d+(?:\.\d*)?|\.\d+)$", re.ASCII)

MAX_DURATION_SECONDS = 10 * 366 * 86400.0
"""Longest duration that is accepted, ten years; a longer one is a typing error."""

MAX_LATENCY_MS = 3_600_000.0
"""Longest round trip that is accepted, one hour; a longer one is not a network latency."""

_ALMOST_A_SECOND = 0.9995
"""Shortest time below one second that would be rounded to 1000 milliseconds."""

_HOUR = 3600


def parse_duration(text: object) -> float:
    """Read a duration in seconds: Go's form ("1h30m", "500ms") plus "d"; a bare number is seconds.

    It also reads "20min", "20 minutes", "1 hour 30 min" and a `timedelta`.

    Raises:
        QuantityError: malformed, negative, or longer than ten years.
    """
    examples = "20m, 1h30m, 500ms or 90"
    seconds = _go_duration(text, Fraction(1), "duration", examples, words=True)
    if seconds > MAX_DURATION_SECONDS:
        raise QuantityError(f"duration {shown_value(text)} is longer than ten years")
    return float(seconds)


def parse_latency_ms(text: object) -> float:
    """Read a round trip in milliseconds: "0.8ms", "300us", "1s"; a bare number is milliseconds.

    It also reads a `timedelta`. It does not read units as words ("20 minutes"), because any label
    of a node that can be read as a round trip counts as one.

    Raises:
        QuantityError: malformed, negative, or longer than an hour.
    """
    examples = "0.8ms, 300us, 1s or 0.8 (milliseconds)"
    latency_ms = _go_duration(text, Fraction(1, 1000), "latency", examples) * 1000
    if latency_ms > MAX_LATENCY_MS:
        raise QuantityError(f"latency {shown_value(text)} is longer than an hour")
    return float(latency_ms)


def _go_duration(
    text: object, bare_unit: Fraction, noun: str, examples: str, *, words: bool = False
) -> Fraction:
    """Return the exact number of seconds; the caller rounds it in its own unit."""
    source = _as_text(text)
    if source.startswith("-"):
        raise QuantityError(f"{noun} {shown_value(text)} is negative; it must be 0 or more")
    source = source.removeprefix("+")
    if _PLAIN_NUMBER.match(source):
        return Fraction(source.removesuffix(".")) * bare_unit
    seconds = _sum_of_parts(_in_go_form(source) if words else source)
    if seconds is None:
        raise QuantityError(f"{shown_value(text)} is not a {noun}; write for example {examples}")
    return seconds


def _as_text(value: object) -> str:
    """Return a given value as text; "" where it cannot be a duration."""
    if isinstance(value, timedelta):
        return f"{plain_decimal(value / timedelta(seconds=1))}s"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    if isinstance(value, float):
        return plain_decimal(value) if math.isfinite(value) else ""
    return short_text(value)


def _in_go_form(source: str) -> str:
    """Return the text in Go's form: "20 minutes" becomes "20m"; unreadable text stays as it is."""
    written, position = "", 0
    while part := _WORDED_PART.match(source, position):
        number, unit = part.groups()
        word = unit.lower()
        written += number + _WORDS.get(word, _WORDS.get(word.removesuffix("s"), unit))
        position = part.end()
    return written if position == len(source) else source


def _sum_of_parts(source: str) -> Fraction | None:
    """Return the seconds of text in Go's form, or None if it is not in that form."""
    total, position = Fraction(0), 0
    while part := _DURATION_PART.match(source, position):
        total += Fraction(part.group(1)) * _DURATION_UNITS[part.group(2)]
        position = part.end()
    return total if source and position == len(source) else None


def plain_decimal(value: float) -> str:
    """Write a finite number exactly and without exponent: "0.00001", not "1e-05"."""
    return format(Decimal(repr(value)), "f").removesuffix(".0")


def duration_text(seconds: float) -> str:
    """Write seconds for programs, in resources: "0.5s", "90s", "22m5.203s", "48h".

    They are rounded to the nanosecond, as in Go.
    """
    exact = Decimal(repr(round(seconds, 9)))
    return f"{_shortest(exact)}s" if exact < 120 else _hours_text(exact)


def exact_duration_text(seconds: float) -> str:
    """Write seconds for programs, in annotations: "0.5s", "1m30s", "1325.203s", "48h".

    The text reads back as exactly the same number. Compiled pipelines and their golden files have
    this form, so it differs from the form in resources.
    """
    if seconds != int(seconds):
        return exact_seconds_text(seconds)
    return _hours_text(Decimal(int(seconds))) or "0s"


def _hours_text(seconds: Decimal) -> str:
    """Return hours, minutes and seconds, as in `1h30m`; "" for 0 seconds."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{_shortest(amount)}{unit}" for amount, unit in parts if amount)


def exact_seconds_text(seconds: float) -> str:
    """Write seconds for programs, in Cluster files: "90s"; it reads back as the same number."""
    return f"{plain_decimal(seconds)}s"


def latency_text(latency_ms: float) -> str:
    """Write a round trip for programs, in resources: "0.289ms"; to the nanosecond."""
    return exact_latency_text(round(latency_ms, 6))


def exact_latency_text(latency_ms: float) -> str:
    """Write a round trip for programs, in annotations and Cluster files.

    The text reads back as the same number.
    """
    return f"{plain_decimal(latency_ms)}ms"


def format_duration(seconds: float) -> str:
    """Write seconds for people: "800ms", "45s", "20m", "1h30m", "2d4h"; at most two units."""
    if 0 < seconds < _ALMOST_A_SECOND:
        milliseconds = seconds * 1000
        if milliseconds < 0.001:
            return "0s"
        return f"{milliseconds:.0f}ms" if milliseconds >= 10 else f"{milliseconds:.2g}ms"
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.3g}s"
    return "".join(_units(round(seconds))[:2]) or "0s"


def _units(seconds: int) -> list[str]:
    """Return the days, hours, minutes and seconds that are not 0, as in `["1h", "30m"]`."""
    parts = []
    for unit, size in (("d", 24 * _HOUR), ("h", _HOUR), ("m", 60), ("s", 1)):
        amount, seconds = divmod(seconds, size)
        if amount:
            parts.append(f"{amount}{unit}")
    return parts


def format_addable_duration(seconds: float) -> str:
    """Write seconds for a table: "1h1m1s", so that readers can add up its rows.

    From one day on, hours and minutes are enough.
    """
    whole = round(seconds)
    if whole < _HOUR:
        return format_duration(seconds)
    parts = _units(whole)
    has_days = parts[0].endswith("d")
    return "".join(text for text in parts if not (has_days and text.endswith("s")))


def whole_seconds_text(seconds: float) -> str:
    """Write seconds for messages that readers compare with a setting in seconds: "90 s"."""
    return f"{seconds:.0f} s"


def round_trip_text(latency_ms: float) -> str:
    """Write a round trip for a sentence, with three digits: "0.289 ms"."""
    return f"{latency_ms:.3g} ms"


def round_trip_figure(latency_ms: float) -> str:
    """Write a round trip for a table, whose rows readers compare and add up: "0.2893 ms"."""
    return f"{latency_ms:.4g} ms"


def given_round_trip_text(latency_ms: float) -> str:
    """Write a limit or a tolerance with the digits that its author has set: "20 ms"."""
    return f"{latency_ms:g} ms"


def marked_round_trip_text(latency_ms: float) -> str:
    """Write the limit of a mark as its author writes it in code: "20ms"."""
    return f"{latency_ms:g}ms"


def _shortest(number: Decimal) -> str:
    return f"{number.normalize():f}"
