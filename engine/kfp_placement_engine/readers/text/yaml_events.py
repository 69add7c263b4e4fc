"""A reader of YAML to plain values, event by event and within limits.

PyYAML's own constructor is recursive, does not count what an alias repeats, and keeps the last of
two equal keys. This one keeps a stack, counts, and names the line. Scalars are PyYAML's, with which
KFP writes its packages, except where Kubernetes' tools differ: keys are always text, times stay
text, there are no base-60 numbers.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from kfp_placement_engine.exceptions import InputError, LimitError

_MOST_DIGITS = 3_500
"""Length of the longest integer, in any base: Python writes none of more than 4,300 digits."""

MAX_ALIASED_VALUES = 1_000_000
"""Largest number of values that the aliases of a file repeat in total; a bomb repeats billions."""

_PROGRESS_EVENTS = 20_000
_CACHED_CHARACTERS = 40
_CACHED_SCALARS = 50_000
_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset({_TAG + kind for kind in ("str", "timestamp", "binary")} | {"!"})
_SCALAR_TAGS: Mapping[str, type | tuple[type, ...]] = {
    _TAG + "int": int,
    _TAG + "float": (int, float),
    _TAG + "bool": bool,
    _TAG + "null": type(None),
}
_COLLECTION_TAGS = frozenset({_TAG + kind for kind in ("map", "seq", "set", "omap")} | {"!"})

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})
_FALSE = frozenset({"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})
_INTEGER = re.compile(r"^[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)$", re.ASCII)
_FLOAT = re.compile(
    r"^[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
    r"|\.(?:inf|Inf|INF))$|^\.(?:nan|NaN|NAN)$",
    re.ASCII,
)
_MERGE = object()
_NO_KEY = object()


def load_yaml(
    data: bytes, *, name: str, max_depth: int, progress: Callable[[float], None]
) -> list[Any]:
    """Read every document of `data` (UTF-8); None = an empty one.

    Raises:
        InputError: the text is not YAML, or has a key twice, or an unknown tag or anchor; the
                message names the line.
        LimitError: the text is nested too deeply, or its aliases repeat too much.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(name, max_depth, progress, max(1, len(data)))
    try:
        return builder.documents(yaml.parse(data, Loader=loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        problem = " ".join(part for part in (error.context, error.problem) if part)
        raise InputError(f"{name}{line}: not valid YAML: {problem}") from error
    except yaml.YAMLError as error:
        text = " ".join(str(error).split())
        raise InputError(f"{name}: not valid YAML: {text:.200}") from error


def parse_scalar(text: str) -> Any:
    """Return the value of a plain scalar.

    Raises:
        ValueError: the text is a number of thousands of digits.
    """
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text[0] not in "+-.0123456789":
        return text
    if _INTEGER.match(text):
        return _integer(text.replace("_", ""))
    if _FLOAT.match(text):
        return float(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan").lower())
    return text


def _integer(text: str) -> Any:
    if len(text) > _MOST_DIGITS:
        raise ValueError
    digits = text.lstrip("+-")
    if not digits.removeprefix("0b").removeprefix("0x"):
        return text
    sign = -1 if text.startswith("-") else 1
    for prefix, base in (("0b", 2), ("0x", 16)):
        if digits.startswith(prefix):
            return sign * int(digits[2:], base)
    return sign * int(digits, 8 if digits.startswith("0") else 10)


@dataclass(slots=True)
class _Frame:
    """Collection that is being read."""

    values: dict[str, Any] | list[Any]
    anchor: str | None
    first_count: int
    key: Any = _NO_KEY
    merges: list[dict[str, Any]] = field(default_factory=list)


class _Builder:
    """Builder of values from events, with a stack of open collections."""

    def __init__(
        self, name: str, max_depth: int, progress: Callable[[float], None], length: int
    ) -> None:
        self._name = name
        self._max_depth = max_depth
        self._progress = progress
        self._length = length
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._scalars: dict[str, Any] = {}
        self._documents: list[Any] = []
        self._values = 0
        self._aliased = 0

    def documents(self, events: Iterator[Any]) -> list[Any]:
        """Return the documents; None = an empty one."""
        handlers: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._start,
            yaml.SequenceStartEvent: self._start,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: lambda _event: self._anchors.clear(),
        }
        for number, event in enumerate(events):
            handler = handlers.get(type(event))
            if handler is not None:
                handler(event)
            if number % _PROGRESS_EVENTS == 0:
                self._progress(min(1.0, event.start_mark.index / self._length))
        return self._documents

    def _start(self, event: Any) -> None:
        if event.tag is not None and event.tag not in _COLLECTION_TAGS:
            raise self._error(event, f"tag {event.tag:.60} is not allowed; write plain values")
        if self._stack and self._expects_key():
            raise self._error(event, "a list or mapping as key; keys must be text")
        if len(self._stack) >= self._max_depth:
            raise self._error(event, f"nested deeper than {self._max_depth} levels", LimitError)
        self._values += 1
        values: dict[str, Any] | list[Any] = [] if type(event) is yaml.SequenceStartEvent else {}
        self._stack.append(_Frame(values, event.anchor, self._values))
        if event.anchor is not None:
            self._anchors.pop(event.anchor, None)

    def _end(self, event: Any) -> None:
        frame = self._stack.pop()
        if frame.merges:
            self._merge(frame)
        self._add(event, frame.values)
        if frame.anchor is not None:
            self._anchors[frame.anchor] = (frame.values, self._values - frame.first_count + 1)

    def _scalar(self, event: Any) -> None:
        self._values += 1
        value: Any = event.value
        if not self._stack or not self._expects_key():
            value = self._scalar_value(event)
            self._add(event, value)
        elif value == "<<" and event.implicit[0] and event.tag is None:
            self._stack[-1].key = _MERGE
        else:
            self._set_key(event, value)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1)

    def _scalar_value(self, event: Any) -> Any:
        text: str = event.value
        if event.tag is not None:
            return self._tagged(event, text)
        if not event.implicit[0]:
            return text
        if text in self._scalars:
            return self._scalars[text]
        try:
            value = parse_scalar(text)
        except ValueError as error:
            raise self._error(event, f"number of {len(text)} characters") from error
        if len(text) <= _CACHED_CHARACTERS and len(self._scalars) < _CACHED_SCALARS:
            self._scalars[text] = value
        return value

    def _tagged(self, event: Any, text: str) -> Any:
        if event.tag in _TEXT_TAGS:
            return text
        expected = _SCALAR_TAGS.get(event.tag)
        if expected is None:
            raise self._error(event, f"tag {event.tag:.60} is not allowed; write plain values")
        try:
            value = parse_scalar(text)
        except ValueError:
            value = text
        if not isinstance(value, expected):
            raise self._error(event, f"{text!r:.60} does not fit its tag {event.tag:.60}")
        return value

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise self._error(
                event, f"alias *{event.anchor:.60} has no anchor before it or is inside it"
            )
        value, count = self._anchors[event.anchor]
        self._aliased += count
        self._values += count
        if self._aliased > MAX_ALIASED_VALUES:
            raise self._error(
                event,
                f"aliases repeat more than {MAX_ALIASED_VALUES} values; write the values out or"
                " remove the aliases",
                LimitError,
            )
        if self._stack and self._expects_key():
            if not isinstance(value, str):
                raise self._error(event, "an alias as key that is not text; keys must be text")
            self._set_key(event, value)
        else:
            self._add(event, value)

    def _expects_key(self) -> bool:
        frame = self._stack[-1]
        return frame.key is _NO_KEY and type(frame.values) is dict

    def _set_key(self, event: Any, key: str) -> None:
        frame = self._stack[-1]
        if key in frame.values:
            raise self._error(event, f"key {key!r:.80} appears twice in one mapping; remove one")
        frame.key = key

    def _add(self, event: Any, value: Any) -> None:
        if not self._stack:
            self._documents.append(value)
            return
        frame = self._stack[-1]
        if isinstance(frame.values, list):
            frame.values.append(value)
            return
        if frame.key is _MERGE:
            sources = value if isinstance(value, list) else [value]
            if not all(isinstance(source, dict) for source in sources):
                raise self._error(event, "<< merges something that is not a mapping")
            frame.merges.extend(sources)
        else:
            frame.values[frame.key] = value
        frame.key = _NO_KEY

    def _merge(self, frame: _Frame) -> None:
        assert isinstance(frame.values, dict)
        for source in frame.merges:
            for key, value in source.items():
                frame.values.setdefault(key, value)

    def _error(self, event: Any, problem: str, kind: type[InputError] = InputError) -> InputError:
        return kind(f"{self._name}, line {event.start_mark.line + 1}: {problem}")
