"""Traces of pipelines that ran many times: one file each, one row a pod."""

import csv
import gzip
import io
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command import BenchmarkError
from benchmarks.data import data_folder
from kfp_placement_engine.exceptions import InputNotFoundError
from kfp_placement_engine.model.history import Observation, StepIdentity

FOLDER = "cws-runs"
COLUMNS = ("run", "process", "tag", "k", "container", "node", "realtime_s", "read_mb")
MOST_BYTES = 500_000_000
_ENDINGS = (".csv", ".csv.gz")
_MEGABYTE = 1e6


@dataclass(frozen=True)
class Trace:
    """One pipeline.

    Attributes:
        pipeline: its name.
        runs: the steps of each, in the order of the runs.
    """

    pipeline: str
    runs: tuple[tuple[Observation, ...], ...]


def trace_files(data: Path | None = None) -> list[Path]:
    """The traces, by name.

    Args:
        data: the data folder, that of the traces, or a single one; None looks for the first.

    Raises:
        InputNotFoundError: there are none.
    """
    if data is not None and data.is_file():
        return [data]
    folder = data_folder(data)
    inside = folder / FOLDER if (folder / FOLDER).is_dir() else folder
    files = sorted(path for path in inside.iterdir() if path.name.endswith(_ENDINGS))
    if not files:
        raise InputNotFoundError(f"{inside}: holds no traces (*.csv, *.csv.gz)")
    return files


def read_trace(path: Path) -> Trace:
    """A trace of the form of `cws-runs`; columns that are not needed are ignored.

    Times below half a second count as such; what has no time is left out.

    Raises:
        InputNotFoundError: there is no such file.
        BenchmarkError: the file is not a trace; the message names the line and what is wrong.
    """
    runs: dict[int, list[Observation]] = {}
    pipeline = path.name.split(".")[0]
    for line, row in _rows(path):
        try:
            number, observation = _observation(pipeline, row)
        except ValueError as error:
            raise BenchmarkError(f"{path}, line {line}: {error}") from error
        if observation is not None:
            runs.setdefault(number, []).append(observation)
    if not runs:
        raise BenchmarkError(f"{path}: holds no steps with a time")
    return Trace(pipeline, tuple(tuple(runs[number]) for number in sorted(runs)))


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.DictReader(io.StringIO(_text(path)), strict=True)
    try:
        missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
        if missing:
            raise BenchmarkError(f"{path}: has no column {', '.join(missing)}")
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise BenchmarkError(f"{path}, line {reader.line_num}: {error}") from error


def _text(path: Path) -> str:
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise InputNotFoundError(f"{path}: no such file") from error
    except (OSError, EOFError, zlib.error) as error:
        raise BenchmarkError(f"{path}: cannot be read: {error}") from error
    if len(content) > MOST_BYTES:
        raise BenchmarkError(f"{path}: is larger than {MOST_BYTES // 1_000_000} MB")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise BenchmarkError(f"{path}: is not UTF-8: {error}") from error


def _observation(pipeline: str, row: dict[str, str]) -> tuple[int, Observation | None]:
    """The number of its run, and the step; None = it has no time.

    Raises:
        ValueError: a value is not what it should be.
    """
    number, seconds, read_mb = row["run"], _number(row, "realtime_s"), _number(row, "read_mb")
    if not (number or "").isdecimal():
        raise ValueError(f"run {number!r:.40} is not a number")
    if seconds is None:
        return int(number), None
    process = row["process"] or ""
    identity = StepIdentity(
        pipeline=pipeline,
        step=process,
        iteration=f"{row['tag']}#{row['k']}",
        component=process.rpartition(":")[2],
        image=row["container"] or "",
    )
    size = None if read_mb is None else read_mb * _MEGABYTE
    return int(number), Observation(identity, seconds, row["node"] or "", size)


def _number(row: dict[str, str], name: str) -> float | None:
    """A number from 0; None = there is none."""
    text = row[name] or ""
    if text in ("", "-"):
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} {text!r:.40} is not a number from 0")
    return value
