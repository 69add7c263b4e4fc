"""Durations as Argo reads them: `10`, `10s`, `1h30m`, `2d`."""

import re

from tests.controlplane.argo.exceptions import TemplateError

_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)")


def parse_duration(text: str) -> float:
    """Seconds of a duration; a bare number is in seconds.

    Raises:
        TemplateError: it is none.
    """
    text = str(text).strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise TemplateError(f"unable to parse {text} as a duration")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
