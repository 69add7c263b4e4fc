"""The nouns of what is drawn: schedules over time, and what waits for what."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kfp_placement_engine.model.promise import TimeRange


@dataclass(frozen=True)
class Bar:
    """What happens from one time to another on a lane; all seconds are those of the time line.

    Attributes:
        label: short name; those of a schedule differ.
        title: all that is known of it, in a sentence.
        start_seconds, finish_seconds: from when to when.
        phases: parts of it in order of time, each by its kind and the second in which it ends.
        marks: kinds of what is special: `critical`, `conditional`, `assumed`.
        ends: when it ends by past runs; None = not known.
    """

    label: str
    title: str
    start_seconds: float
    finish_seconds: float
    phases: Sequence[tuple[str, float]] = ()
    marks: Sequence[str] = ()
    ends: TimeRange | None = None


@dataclass(frozen=True)
class Lane:
    """What happens in one place, such as a node.

    Attributes:
        name: of the place; bars have its colour.
        note: in a few words how much happens.
        bars: one by one.
        thin: what needs hardly any room, such as driver pods.
        levels: instead of bars: how many run at a time, in equal parts of the time line.
    """

    name: str
    note: str
    bars: Sequence[Bar] = ()
    thin: Sequence[Bar] = ()
    levels: Sequence[int] = ()


@dataclass(frozen=True)
class Schedule:
    """Lanes that belong together, such as those of a plan, or of what happened.

    Attributes:
        title: heading above its lanes, or "".
        lanes: from top to bottom.
    """

    title: str
    lanes: Sequence[Lane]


@dataclass(frozen=True)
class TimeLine:
    """Schedules below each other, on one scale.

    Attributes:
        name: what it shows, for those who do not see it.
        description: the same in a sentence or two.
        schedules: from top to bottom.
        end_seconds: right end of the scale, which begins at 0.
        limit: moment before which nothing can end, and what to say of it; 0 = not known.
        key: what occurs of phases and marks, each with its meaning.
        begin: time of day of second 0; None = times are durations.
        title: heading.
        notes: what is summed up or left out.
    """

    name: str
    description: str
    schedules: Sequence[Schedule]
    end_seconds: float
    limit: tuple[float, str]
    key: Sequence[tuple[str, str]] = ()
    begin: datetime | None = None
    title: str = "Time line"
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Box:
    """A node of a graph.

    Attributes:
        key: its own name, which others have as a parent.
        parents: keys of those that come before it.
        label: short name; those of a graph differ.
        note: a few words below it.
        title: all that is known of it, in a sentence.
        place: has this place's colour; "" = no colour.
        marks: `conditional`, `assumed`.
        is_missing: it has no place, though it needs one.
    """

    key: str
    parents: Sequence[str]
    label: str
    note: str
    title: str
    place: str = ""
    marks: Sequence[str] = ()
    is_missing: bool = False


@dataclass(frozen=True)
class Graph:
    """What waits for what.

    Attributes:
        name: what it shows, for those who do not see it.
        boxes: those that come first first.
        is_summed_up: there are too many boxes to draw each.
        title: heading.
        notes: what is summed up or left out.
    """

    name: str
    boxes: Sequence[Box]
    is_summed_up: bool = False
    title: str = "Graph"
    notes: Sequence[str] = ()
