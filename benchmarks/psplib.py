"""Projects of PSPLIB with one mode a job (`.sm`), and the makespans known for them.

The format is that of the generator ProGen: Kolisch, Sprecher (1996), "PSPLIB - a project scheduling
problem library", European Journal of Operational Research 96.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from kfp_placement_engine.exceptions import InputError, InputNotFoundError, LimitError

MOST_JOBS = 2_000
MOST_BYTES = 8_000_000
MOST_SECONDS = 10**7
"""A job longer than a project of years is a mistake."""

MOST_AMOUNT = 10**9

_PRECEDENCES, _REQUESTS = "PRECEDENCE RELATIONS", "REQUESTS/DURATIONS"
_AVAILABILITIES = "RESOURCEAVAILABILITIES"

_COUNT = re.compile(r"([^:]+):\s*(-?[0-9]+)")
_INTEGER = re.compile(r"-?[0-9]{1,12}", re.ASCII)


@dataclass(frozen=True)
class Job:
    """A job of a project.

    Attributes:
        number: number in the file, from 1.
        seconds: duration; the file's unit is taken for seconds.
        requests: amounts of each renewable resource while it lasts.
        successors: numbers of the jobs that wait for it.
    """

    number: int
    seconds: int
    requests: tuple[int, ...]
    successors: tuple[int, ...]


@dataclass(frozen=True)
class Project:
    """A project.

    Attributes:
        name: name of the file, with its ending.
        jobs: jobs in the order of their numbers.
        capacities: capacities of the renewable resources.
    """

    name: str
    jobs: tuple[Job, ...]
    capacities: tuple[int, ...]


def read_project(path: Path) -> Project:
    """Read a file.

    Raises:
        InputNotFoundError: it is not there.
        InputError: it is cut off, malformed, multi-mode, has a cycle, or a job that never fits.
        LimitError: it is too large.
    """
    try:
        size = path.stat().st_size
        text = path.read_text("latin-1") if size <= MOST_BYTES else ""
    except FileNotFoundError as error:
        raise InputNotFoundError(f"{path}: no such file") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if size > MOST_BYTES:
        raise LimitError(f"{path}: larger than {MOST_BYTES:,} bytes")
    return _Reader(path.name, text).project()


class _Reader:
    """Reads one file; every message names it."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        text = text.rstrip("\x1a")  # the end of a file of DOS
        self._lines = [line.strip() for line in text.splitlines()]
        # A number that is cut off has nothing behind it.
        self._is_whole = text.endswith("*") or text[-1:].isspace()

    def project(self) -> Project:
        count = self._count("jobs")
        if count > MOST_JOBS:
            raise LimitError(f"{self._name}: {count:,} jobs; at most {MOST_JOBS:,} are read")
        if count < 1:
            raise self._wrong(f"{count} jobs; there must be one or more")
        self._check_sections()
        resources = self._resources()
        successors = self._successors(count)
        requests = self._requests(count, resources)
        capacities = next(self._rows(_AVAILABILITIES, 2), [])
        if len(capacities) != resources:
            raise self._wrong(f"cut off: {len(capacities)} of {resources} resource availabilities")
        jobs = tuple(
            Job(number, seconds, tuple(needs), successors[number])
            for number, (seconds, *needs) in enumerate(requests, start=1)
        )
        self._check(jobs, capacities)
        return Project(self._name, jobs, tuple(capacities))

    def _wrong(self, text: str) -> InputError:
        return InputError(f"{self._name}: {text}")

    def _count(self, word: str) -> int:
        """Read the number behind a word and a colon in the head of the file."""
        for line in self._lines:
            match = _COUNT.match(line.removeprefix("- "))
            if match and match[1].startswith(word):
                return int(match[2][:13])
        raise self._wrong(f"not a PSPLIB project: it has no line `{word} ...: NUMBER`")

    def _resources(self) -> int:
        """Read the number of renewable resources; others are of multi-mode projects."""
        for word in ("nonrenewable", "doubly constrained"):
            if self._count(word):
                raise self._wrong(
                    f"has {word} resources; only single-mode projects with renewable ones are read"
                )
        count = self._count("renewable")
        if not 0 <= count <= 100:
            raise self._wrong(f"{count} renewable resources; there must be 0 to 100")
        return count

    def _check_sections(self) -> None:
        """Refuse a file that has not been written to its end."""
        for heading in (_PRECEDENCES, _REQUESTS, _AVAILABILITIES):
            self._start(heading)
        if not self._is_whole:
            raise self._wrong("cut off: its last line has no end")

    def _start(self, heading: str) -> int:
        """Return the line in which a section begins."""
        for at, line in enumerate(self._lines):
            if line.startswith(heading):
                return at
        raise self._wrong(f"cut off: it has no section {heading}")

    def _rows(self, heading: str, skipped: int) -> Iterator[list[int]]:
        """Return the rows of numbers in a section.

        Args:
            heading: beginning of its first line.
            skipped: lines from there to the first row.
        """
        for line in self._lines[self._start(heading) + skipped :]:
            if not line or line.startswith("*"):
                return
            words = line.split()
            if not all(_INTEGER.fullmatch(word) for word in words):
                raise self._wrong(f"{line!r:.60} in the section {heading}: not a row of integers")
            yield [int(word) for word in words]

    def _successors(self, count: int) -> dict[int, tuple[int, ...]]:
        """Read the numbers of the jobs that wait for each job."""
        successors: dict[int, tuple[int, ...]] = {}
        for row in self._rows(_PRECEDENCES, 2):
            if len(row) < 3 or len(row) - 3 != row[2]:
                raise self._wrong(f"cut off: the successors of job {row[0]} are not all there")
            number, modes, _, *after = row
            if modes != 1:
                raise self._wrong(
                    f"job {number} has {modes} modes; only single-mode files are read"
                )
            if number != len(successors) + 1 or not all(1 <= each <= count for each in after):
                raise self._wrong(f"job {number} or a successor of it is out of place")
            successors[number] = tuple(dict.fromkeys(after))
        if len(successors) != count:
            raise self._wrong(
                f"cut off: it has {count:,} jobs and successors of {len(successors):,}"
            )
        return successors

    def _requests(self, count: int, resources: int) -> list[list[int]]:
        """Duration and requests of every job."""
        rows: list[list[int]] = []
        for row in self._rows(_REQUESTS, 3):
            if len(row) != 3 + resources:
                raise self._wrong(
                    f"job {row[0]} has {len(row)} columns of durations and requests; "
                    f"with {resources} resources there are {3 + resources}"
                )
            number, mode, *amounts = row
            if number != len(rows) + 1 or mode != 1:
                raise self._wrong(f"the requests of job {number}, mode {mode}, are out of place")
            rows.append(amounts)
        if len(rows) != count:
            raise self._wrong(f"cut off: it has {count:,} jobs and durations of {len(rows):,}")
        return rows

    def _check(self, jobs: Sequence[Job], capacities: Sequence[int]) -> None:
        if not any(job.seconds for job in jobs):
            raise self._wrong("none of its jobs has a duration; there is nothing to plan")
        if not all(0 <= capacity <= MOST_AMOUNT for capacity in capacities):
            raise self._wrong(f"a resource availability is not from 0 to {MOST_AMOUNT:,}")
        for job in jobs:
            if not 0 <= job.seconds <= MOST_SECONDS:
                raise self._wrong(
                    f"job {job.number} has the duration {job.seconds}; it must be from 0 to "
                    f"{MOST_SECONDS:,}"
                )
            for number, (need, room) in enumerate(zip(job.requests, capacities, strict=True), 1):
                if need < 0:
                    raise self._wrong(f"job {job.number} requests {need} of resource {number}")
                if need > room and job.seconds:
                    raise self._wrong(
                        f"job {job.number} requests {need} of resource {number}, of which there "
                        f"are {room}: it never fits"
                    )
        try:
            TopologicalSorter({job.number: job.successors for job in jobs}).prepare()
        except CycleError as error:
            loop = " -> ".join(str(number) for number in error.args[1][:6])
            raise self._wrong(f"its jobs wait for each other in a cycle: {loop}") from error


def critical_path_seconds(project: Project) -> int:
    """Return the longest chain of durations: the makespan if no resource were short."""
    after = {job.number: job.successors for job in project.jobs}
    seconds = {job.number: job.seconds for job in project.jobs}
    longest: dict[int, int] = {}
    for number in TopologicalSorter(after).static_order():
        behind = max((longest[each] for each in after[number]), default=0)
        longest[number] = seconds[number] + behind
    return max(longest.values())


def predecessors_of(project: Project) -> dict[int, tuple[int, ...]]:
    """Return the jobs that each job waits for."""
    before: dict[int, list[int]] = {job.number: [] for job in project.jobs}
    for job in project.jobs:
        for each in job.successors:
            before[each].append(job.number)
    return {number: tuple(jobs) for number, jobs in before.items()}


def without_instants(project: Project) -> dict[int, tuple[int, ...]]:
    """Return the jobs of any duration that each job waits for, in order.

    Jobs of no duration are left out; what follows them waits for what they wait for.
    """
    before = predecessors_of(project)
    seconds = {job.number: job.seconds for job in project.jobs}
    successors: dict[int, tuple[int, ...]] = {}
    for number in TopologicalSorter(before).static_order():
        lasting: set[int] = set()
        for each in before[number]:
            lasting.update((each,) if seconds[each] else successors[each])
        successors[number] = tuple(sorted(lasting))
    return successors


def read_optima(path: Path) -> Mapping[str, float]:
    """Known optima by problem, see `problem_name`; a blank one is not known.

    Raises:
        InputNotFoundError: the file is not there.
        InputError: it is not a CSV with the columns `problem,optimum`, or names a problem twice.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.reader(stream))
    except FileNotFoundError as error:
        raise InputNotFoundError(f"{path}: no such file") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as CSV: {error}") from error
    if not rows or [cell.strip() for cell in rows[0]] != ["problem", "optimum"]:
        raise InputError(f"{path}: the first line must be `problem,optimum`")
    optima: dict[str, float] = {}
    lines: dict[str, int] = {}
    for line, row in enumerate(rows[1:], start=2):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) != 2 or not re.fullmatch(r"([1-9][0-9]{0,11}(\.0*)?)?", cells[1], re.ASCII):
            raise InputError(
                f"{path}, line {line}: {','.join(cells)!r:.60} is not a problem and its makespan; "
                "write a whole number of 1 or more, or nothing, behind the comma"
            )
        name = problem_name(cells[0])
        if lines.setdefault(name, line) != line:
            raise InputError(f"{path}, line {line}: {cells[0]!r:.60} is in line {lines[name]} too")
        if cells[1]:
            optima[name] = float(cells[1])
    return optima


def problem_name(text: str) -> str:
    """Return the key of a file or row: its name without the ending `.sm`, in lower case."""
    return text.lower().removesuffix(".sm")
