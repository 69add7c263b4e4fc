"""Traces of pipelines that ran many times: one file each, one row a pod.

Beside `PIPELINE.csv.gz` there may be `PIPELINE-order.json.gz` with the order of its steps.
"""

import csv
import gzip
import io
import json
import math
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from benchmarks.command import BenchmarkError
from benchmarks.data import data_files
from kfp_placement_engine import Step
from kfp_placement_engine.contract.history.pipeline_history import step_identity
from kfp_placement_engine.exceptions import InputNotFoundError
from kfp_placement_engine.model.history import PastStep, text_digest
from kfp_placement_engine.units.durations import MAX_DURATION_SECONDS
from kfp_placement_engine.views.formatting import counted

FOLDER = "cws-runs"
COLUMNS = (
    "run", "process", "tag", "k", "container", "node", "cpus", "memory_mb", "start_s",
    "complete_s", "realtime_s", "read_mb",
)  # fmt: skip
"""Columns of every trace; with `submit_s` and `peak_rss_mb`, memory is learned too."""

MOST_BYTES = 500_000_000
_ENDINGS = (".csv", ".csv.gz")
_MEGABYTE, _MEBIBYTE, _EXBIBYTE = 1e6, 2**20, 2**60


@dataclass(frozen=True)
class TracedPod:
    """One pod.

    Attributes:
        step: step of the pod.
        past: observation of the pod.
        start_seconds, end_seconds: times since the run's first submission; None = unknown.
        submitted_seconds: time of its creation, counted in the same way; None = unknown.
    """

    step: Step
    past: PastStep
    start_seconds: float | None
    end_seconds: float | None
    submitted_seconds: float | None

    @property
    def name(self) -> str:
        """The step with its iteration, as the order has it."""
        return self.step.name

    @property
    def is_usable(self) -> bool:
        """True if its figures can be true; nothing is learned from other rows."""
        past = self.past
        times = (past.seconds, self.start_seconds, self.end_seconds, self.submitted_seconds)
        return all(each is None or each <= MAX_DURATION_SECONDS for each in times) and all(
            each is None or each <= _EXBIBYTE for each in (past.input_bytes, past.peak_bytes)
        )


@dataclass(frozen=True)
class Order:
    """Order of a pipeline's steps.

    Attributes:
        steps: names, as those of pods.
        edges: places of two steps in `steps`; the first ends before the second is submitted.
    """

    steps: tuple[str, ...]
    edges: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Trace:
    """One pipeline.

    Attributes:
        pipeline: name of the pipeline.
        pods: pods of each run, in the order of the runs.
        order: order of its steps; None = unknown.
        left_out: number of rows that cannot be true.
    """

    pipeline: str
    pods: tuple[tuple[TracedPod, ...], ...]
    order: Order | None = None
    left_out: int = 0

    @cached_property
    def runs(self) -> tuple[tuple[PastStep, ...], ...]:
        """The steps of each run."""
        return tuple(tuple(pod.past for pod in run) for run in self.pods)


def trace_files(data: Path | None = None) -> list[Path]:
    """Return the traces by name.

    Args:
        data: the data folder, that of the traces, or a single one; None looks for the first.

    Raises:
        InputNotFoundError: there are none.
        BenchmarkError: two are of one pipeline.
    """
    files = data_files(
        data, FOLDER, lambda path: path.name.endswith(_ENDINGS), "traces (*.csv, *.csv.gz)"
    )
    named: dict[str, Path] = {}
    for path in files:
        first = named.setdefault(_pipeline(path), path)
        if first != path:
            raise BenchmarkError(
                f"{path}: is of the pipeline {_pipeline(path)!r}, as {first.name} is;"
                " rename or remove one of them"
            )
    return files


def _pipeline(path: Path) -> str:
    return path.name.split(".")[0]


def read_trace(path: Path) -> Trace:
    """Read a trace in the format of `cws-runs`; other columns are ignored.

    What has no time is left out, and what cannot be true is counted and left out.

    Raises:
        InputNotFoundError: there is no such file.
        BenchmarkError: the file is not a trace; the message names the line and what is wrong.
    """
    runs: dict[int, list[TracedPod]] = {}
    pipeline, left_out = _pipeline(path), 0
    for line, row in _rows(path):
        try:
            number, pod = _pod(pipeline, row)
        except (ValueError, OverflowError) as error:
            raise BenchmarkError(f"{path}, line {line}: {error}") from error
        if pod is not None and pod.is_usable:
            runs.setdefault(number, []).append(pod)
        elif pod is not None:
            left_out += 1
    if not runs:
        why = f"; {left_out_text(left_out)}" if left_out else ""
        raise BenchmarkError(f"{path}: holds no steps with a time{why}")
    pods = tuple(tuple(runs[number]) for number in sorted(runs))
    return Trace(pipeline, pods, _order(path.with_name(f"{pipeline}-order.json.gz")), left_out)


def left_out_text(rows: int) -> str:
    """Count the rows of a trace that are left out, by reason."""
    return (
        f"{counted(rows, 'row')} left out: a run time or a moment over 10 years after the begin of"
        " the run, or over 1 EiB read or used, cannot be true"
    )


def _order(path: Path) -> Order | None:
    """Return the order in a file, or None without one.

    Raises:
        BenchmarkError: the file is not an order.
    """
    if not path.is_file():
        return None
    try:
        order = json.loads(_text(path))
        steps = tuple(map(str, order["steps"]))
        edges = tuple((int(before), int(after)) for before, after in order["edges"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise BenchmarkError(f"{path}: is not an order of steps: {error}") from error
    if not all(0 <= place < len(steps) for edge in edges for place in edge):
        raise BenchmarkError(f"{path}: an edge names a step that is not there")
    if len(set(steps)) < len(steps):
        raise BenchmarkError(f"{path}: names a step twice")
    try:
        TopologicalSorter(_before(edges)).prepare()
    except CycleError as error:
        raise BenchmarkError(f"{path}: steps wait for each other") from error
    return Order(steps, edges)


def _before(edges: Iterable[tuple[int, int]]) -> dict[int, set[int]]:
    before: dict[int, set[int]] = {}
    for first, second in edges:
        before.setdefault(second, set()).add(first)
    return before


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


def _pod(pipeline: str, row: dict[str, str]) -> tuple[int, TracedPod | None]:
    """Return the number of a row's run and its pod, or None for a pod without time.

    Raises:
        ValueError: a value is not what it should be.
    """
    number, seconds, read_mb = row["run"], _number(row, "realtime_s"), _number(row, "read_mb")
    if not (number or "").isdecimal():
        raise ValueError(f"run {number!r:.40} is not a number")
    if seconds is None:
        return int(number), None
    size, peak_mb = None if read_mb is None else read_mb * _MEGABYTE, _number(row, "peak_rss_mb")
    requests = {
        "cpu": round(1000 * (_number(row, "cpus") or 0)),
        "memory": round(_MEBIBYTE * (_number(row, "memory_mb") or 0)),
    }
    step = _step(
        row["process"] or "", f"{row['tag']}#{row['k']}", row["container"] or "", **requests
    )
    return int(number), TracedPod(
        step,
        PastStep(
            step_identity(pipeline, step),
            seconds,
            row["node"] or "",
            size,
            # What was too short to be measured has 0.
            peak_bytes=peak_mb * _MEGABYTE if peak_mb else None,
        ),
        start_seconds=_number(row, "start_s"),
        end_seconds=_number(row, "complete_s"),
        submitted_seconds=_number(row, "submit_s"),
    )


@cache
def _step(process: str, iteration: str, image: str, cpu: int, memory: int) -> Step:
    return Step(
        name=f"{process}|{iteration}",
        task=process,
        image=image,
        component=text_digest(process.rpartition(":")[2]),
        iteration_key=iteration,
        requests={"cpu": cpu, "memory": memory},
    )


def _number(row: dict[str, str], name: str) -> float | None:
    """Return a number of 0 or more, or None without one."""
    text = row.get(name) or ""
    if text in ("", "-"):
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} {text!r:.40} is not a number from 0")
    return value
