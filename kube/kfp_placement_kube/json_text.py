"""A reader of the API server's JSON, fast and for any depth.

The server keeps objects nested 10,000 deep where a kind allows unknown fields, as custom resources
may; orjson reads 1,024 levels. One such object, by anybody, must not hide the others in its list.
"""

import re
from typing import Any

import orjson

from kfp_placement_kube.observer import SILENT, Observer

MAX_DEPTH = 500
"""Number of levels that are read of an object too deep for the parser; deeper ones become null."""

# Text that does not end goes to the end of everything: otherwise each of its quotes would be tried.
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]')


def read_json(text: bytes, observer: Observer = SILENT) -> Any:
    """Read JSON text.

    Args:
        text: the JSON text.
        observer: observer of values that are nested too deeply to be read.

    Raises:
        ValueError: the text is not JSON.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        value = orjson.loads(_flattened(text))
    observer.truncated()
    return value


def _flattened(text: bytes) -> bytes:
    """Return the text with null in place of everything that is nested too deeply."""
    kept: list[bytes] = []
    depth, kept_to = 0, 0
    for match in _STRING_OR_BRACKET.finditer(text):
        token = match[0]
        if token in b"[{":
            depth += 1
            if depth == MAX_DEPTH + 1:
                kept += [text[kept_to : match.start()], b"null"]
        elif token in b"]}":
            if depth == MAX_DEPTH + 1:
                kept_to = match.end()
            depth -= 1
    return b"".join([*kept, text[kept_to:]])
