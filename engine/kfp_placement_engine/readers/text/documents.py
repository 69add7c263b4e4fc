"""A reader of YAML and JSON files to plain values (dict, list, str, numbers, None), within limits.

Every refusal names the file, the place in it and what to do. Nothing else is ever raised, whatever
the bytes are.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kfp_placement_engine.exceptions import InputError, InputNotFoundError, LimitError
from kfp_placement_engine.plans.progress import Progress, no_progress
from kfp_placement_engine.readers.text.other_texts import way_out
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.text.yaml_events import load_yaml

RUN_MAX_BYTES = 16 * 2**20
"""Size of the largest RUN file: ten times the largest Workflow that etcd can hold."""

CLUSTER_MAX_BYTES = 512 * 2**20
"""Size of the largest CLUSTER file: a dump of some ten thousand pods with their environment."""

MAX_DEPTH = 100
"""Deepest nesting; the deepest known files (custom resource schemas) reach about 40."""

_BRACKETS = b"{}[]"
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in _BRACKETS)
_JSON_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_YAML_RETRY_BYTES = 1 * 2**20
_PROGRESS_OBJECTS = 5_000
_SPACE = " \t\r\n"


def read_file(path: str | Path, *, max_bytes: int) -> bytes:
    """Read a file whole.

    Raises:
        InputNotFoundError: there is no such file.
        InputError: the file cannot be read, or is a folder.
        LimitError: the file is larger than `max_bytes`.
    """
    if not str(path):
        raise InputError("the name of a file is empty; name a file")
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(max_bytes + 1)
    except FileNotFoundError as error:
        raise InputNotFoundError(f"{path}: no such file") from error
    except IsADirectoryError as error:
        raise InputError(f"{path}: is a folder; name a file") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    _check_size(data, str(path), max_bytes)
    return data


def load_documents(
    data: bytes,
    *,
    name: str,
    max_bytes: int,
    progress: Progress = no_progress,
    drop: frozenset[str] = frozenset(),
) -> list[Any]:
    """Read YAML or JSON: every document in it that is not empty, at least one.

    Args:
        data: bytes of the file: UTF-8, or UTF-16 with a byte-order mark.
        name: name of the file, for messages.
        max_bytes: size of the largest file that is read.
        progress: callback for the progress of reading.
        drop: keys that are left out of every JSON object where a list or an object is below
            them (never a label of that name): saves most of the memory that a dump of pods takes.
            YAML keeps them.

    Raises:
        InputError: the file is not YAML or JSON, is empty, or has a key twice in one mapping.
        LimitError: the file is larger, deeper or more repetitive than allowed.
    """
    _check_size(data, name, max_bytes)
    progress(0.0, f"reading {name}")
    try:
        values = _load_or_name(data, name, progress, drop)
        documents = [value for value in values if value is not None]
    except MemoryError as error:
        raise LimitError(f"{name}: does not fit into memory; give a smaller file") from error
    if not documents:
        raise InputError(f"{name}: is empty; it holds no document")
    progress(1.0, f"read {name}")
    return documents


def parse_json(text: str, *, place: Place) -> Any:
    """Read JSON text that is inside a file, such as an argument of a Workflow.

    Args:
        text: the JSON text.
        place: place of the text in its file, for messages.

    Raises:
        InputError: the text is not JSON, or has a key twice in one object.
        LimitError: the text is nested too deeply.
    """
    values = _load_json(text, text.encode("utf-8", "replace"), place)
    if len(values) != 1:
        raise place.error(f"{len(values)} JSON values; exactly one is expected")
    return values[0]


def _check_size(data: bytes, name: str, max_bytes: int) -> None:
    if len(data) > max_bytes:
        raise LimitError(
            f"{name}: larger than {max_bytes / 2**20:g} MiB; give a smaller file (`kfp-placement"
            " cluster` makes one of a cluster, `kfp-placement history PIPELINE --output FILE` of"
            " one pipeline's past runs)"
        )


def _load_or_name(data: bytes, name: str, progress: Progress, drop: frozenset[str]) -> list[Any]:
    """Load a file; if it is neither YAML nor JSON, or a single text, name what it is instead."""
    try:
        values = _load(data, name, progress, drop)
    except LimitError:
        raise
    except InputError as error:
        if what := way_out(data):
            raise InputError(f"{name}: {what}") from error
        raise
    if all(isinstance(value, str) for value in values) and (what := way_out(data)):
        raise InputError(f"{name}: {what}")
    return values


def _load(data: bytes, name: str, progress: Progress, drop: frozenset[str]) -> list[Any]:
    text = _decode(data, name)
    start = _skip_space(text, 0)
    if start == len(text):
        raise InputError(f"{name}: is empty")
    if not data.startswith(text[: start + 1].encode("utf-8")):
        data = text.encode("utf-8")
    if text[start] not in "{[":
        return _load_yaml(data, name, progress)
    try:
        return _load_json(text, data, Place(name), progress, drop)
    except LimitError:
        raise
    except InputError:
        # YAML has braces too; and a key that appears twice is found again there, with its line.
        if len(data) <= _YAML_RETRY_BYTES:
            try:
                return _load_yaml(data, name, progress)
            except InputError as error:
                if "appears twice" in str(error):
                    raise
        raise


def _decode(data: bytes, name: str) -> str:
    encoding = "utf-8-sig"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif b"\0" in data[:4096] or data.startswith((b"\x1f\x8b", b"PK\x03\x04")):
        raise InputError(f"{name}: is binary or compressed; give YAML or JSON text")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{name}, line {line}: byte {data[error.start]:#04x} is not UTF-8; "
            "give YAML or JSON text in UTF-8"
        ) from error


def _load_yaml(data: bytes, name: str, progress: Progress) -> list[Any]:
    text = f"reading {name}"
    return load_yaml(
        data, name=name, max_depth=MAX_DEPTH, progress=lambda share: progress(share, text)
    )


def _load_json(
    text: str,
    data: bytes,
    place: Place,
    progress: Progress = no_progress,
    drop: frozenset[str] = frozenset(),
) -> list[Any]:
    if _nested_deeper(data, MAX_DEPTH):
        raise place.error(f"nested deeper than {MAX_DEPTH} levels", LimitError)
    decoder = json.JSONDecoder(
        object_pairs_hook=_object_hook(place, data.count(b"{"), progress, drop),
        parse_constant=_refuse_constant,
    )
    values: list[Any] = []
    position = _skip_space(text, 0)
    try:
        while position < len(text):
            value, position = decoder.raw_decode(text, position)
            values.append(value)
            position = _skip_space(text, position)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{place.spelled}, line {error.lineno}: not valid JSON: {error.msg}"
            f" (column {error.colno})"
        ) from error
    except _DuplicateKeyError as error:
        raise place.error(f"key {error.key!r:.80} appears twice in one object") from error
    except RecursionError as error:
        raise place.error("nested too deeply", LimitError) from error
    except ValueError as error:
        raise place.error(f"not valid JSON: {error!s:.120}") from error
    if _SURROGATE_ESCAPE.search(text):
        _refuse_surrogates(values, place)
    return values


class _DuplicateKeyError(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _object_hook(
    place: Place, total: int, progress: Progress, drop: frozenset[str]
) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    done = 0

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal done
        done += 1
        if done % _PROGRESS_OBJECTS == 0:
            progress(min(1.0, done / max(1, total)), f"reading {place.spelled}")
        values = dict(pairs)
        if len(values) != len(pairs):
            counts = Counter(key for key, _ in pairs)
            raise _DuplicateKeyError(counts.most_common(1)[0][0])
        for key in drop.intersection(values):
            if isinstance(values.get(key), dict | list):
                del values[key]
        return values

    return build


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")


def _skip_space(text: str, position: int) -> int:
    length = len(text)
    while position < length and text[position] in _SPACE:
        position += 1
    return position


def _nested_deeper(data: bytes, limit: int) -> bool:
    """Return whether brackets outside of strings nest deeper; fast, and safe for any depth."""
    if data.count(b"{") + data.count(b"[") <= limit:
        return False
    brackets = _JSON_STRING.sub(b"", data).translate(None, _NOT_BRACKETS)
    for _ in range(limit):
        # The mark keeps `[{}]` from losing two levels at once.
        shorter = brackets.replace(b"{}", b".").replace(b"[]", b"").replace(b".", b"")
        if len(shorter) == len(brackets):
            # Nothing is left, or brackets without a partner.
            return brackets.count(b"{") + brackets.count(b"[") > limit
        brackets = shorter
    return bool(brackets)


def _refuse_surrogates(values: list[Any], place: Place) -> None:
    """Refuse half a character, which cannot be written to any output."""
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        around = error.object[max(0, error.start - 30) : error.end]
        raise place.error(f"{around!r} holds half a surrogate pair") from error
