"""Parts of drawings: schedules over time, and graphs of steps that wait for each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from kfp_placement_engine.model.promise import TimeRange


class BarPhase(NamedTuple):
    """Part of a bar, such as the image pull of a step; it begins where the one before ends.

    Attributes:
        kind: `pull`, `wait`, `transfer` or `run`.
        until_seconds: end of the part, on the scale of the time line.
    """

    kind: str
    until_seconds: float


@dataclass(frozen=True)
class Bar:
    """Bar on a lane, such as a step; all times are seconds on the scale of the time line.

    Attributes:
        label: short name, unique in a schedule.
        details: sentence with all details.
        start_seconds, finish_seconds: start and end.
        phases: parts in order of time.
        marks: special properties: `critical`, `conditional`, `assumed`.
        ends: range of the end by past runs; None = not known.
    """

    label: str
    details: str
    start_seconds: float
    finish_seconds: float
    phases: Sequence[BarPhase] = ()
    marks: Sequence[str] = ()
    ends: TimeRange | None = None


@dataclass(frozen=True)
class Lane:
    """Lane of a schedule: all bars in one place, such as a node.

    Attributes:
        name: name of the place, which decides the colour of the bars.
        note: short remark on the content of the lane.
        bars: bars of the lane.
        thin: bars that are drawn thin: of pods that need hardly any room, such as drivers.
        levels: numbers of bars at a time, in equal parts of the time line; drawn instead of bars
            where there are too many.
    """

    name: str
    note: str
    bars: Sequence[Bar] = ()
    thin: Sequence[Bar] = ()
    levels: Sequence[int] = ()


@dataclass(frozen=True)
class DrawnSchedule:
    """Lanes that belong together, such as those of one plan.

    Attributes:
        title: heading above the lanes, or "".
        lanes: lanes from top to bottom.
    """

    title: str
    lanes: Sequence[Lane]


class TimeLimit(NamedTuple):
    """Time before which no schedule can end.

    Attributes:
        seconds: the time on the scale of the time line.
        text: label of the line that is drawn there.
    """

    seconds: float
    text: str


@dataclass(frozen=True)
class TimeLine:
    """Time line: schedules below each other, on one scale.

    Attributes:
        name: name of the drawing for readers who do not see it.
        description: one or two sentences for readers who do not see it.
        schedules: schedules from top to bottom.
        end_seconds: right end of the scale, which begins at 0.
        limit: time before which no schedule can end; None = not known.
        key: phases and marks that occur, each with its meaning.
        begin: time of day of second 0; None = times are durations.
        title: heading.
        notes: remarks on parts that are summed up or left out.
    """

    name: str
    description: str
    schedules: Sequence[DrawnSchedule]
    end_seconds: float
    limit: TimeLimit | None
    key: Sequence[tuple[str, str]]
    begin: datetime | None
    title: str = "Time line"
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Box:
    """Box of a graph, such as a step.

    Attributes:
        key: unique name, by which other boxes name it as a parent.
        parents: keys of the boxes that come before it.
        label: short name, unique in a graph.
        note: short remark below the label.
        details: sentence with all details.
        place: name of the place, which decides the colour of the box; "" = no colour.
        marks: special properties: `conditional`, `assumed`.
        is_missing: whether the box has no place, though it needs one.
    """

    key: str
    parents: Sequence[str]
    label: str
    note: str
    details: str
    place: str
    marks: Sequence[str]
    is_missing: bool


@dataclass(frozen=True)
class Graph:
    """Graph of boxes that wait for each other.

    Attributes:
        name: name of the drawing for readers who do not see it.
        boxes: boxes, each after its parents.
        is_summed_up: whether the boxes stand for groups, because there are too many to draw each.
        title: heading.
        notes: remarks on parts that are summed up or left out.
    """

    name: str
    boxes: Sequence[Box]
    is_summed_up: bool
    title: str = "Graph"
    notes: Sequence[str] = ()
