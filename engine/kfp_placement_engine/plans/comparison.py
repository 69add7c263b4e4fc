"""Figures of a plan, of the schedules it is compared with, and a bound for all plans."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kfp_placement_engine.plans.planned_step import Phases


@dataclass(frozen=True)
class Figures:
    """Figures of one schedule, in the order in which plans are compared.

    Attributes:
        unplaced: number of steps that no node can take.
        latency_excess_ms: sum over steps of the round trip beyond the tolerance band of their rule
            or their hard limit; infinite if a step is on a node of unknown round trip.
        latency_ms: sum of the round trips of latency-ruled steps; infinite likewise.
        makespan_seconds: end of the last step; a mean where ties of the default scheduler decide.
        fastest_seconds, slowest_seconds: range of that mean; None = always the same.
        tie_breaks: number of ways to break ties that the figures are means over.
        moves_volumes: users of one ReadWriteOnce claim run on different nodes, one after another;
            the simulation moves the volume in no time.
        use: share of each resource that is in use: requests x seconds of all pods from the run's
            submission to its end, over what is free at time zero on the nodes that the run may use
            x that time.
    """

    unplaced: int
    latency_excess_ms: float
    latency_ms: float
    makespan_seconds: float
    fastest_seconds: float | None = None
    slowest_seconds: float | None = None
    tie_breaks: int = 1
    moves_volumes: bool = False
    use: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Bound:
    """A makespan that no schedule can beat.

    Attributes:
        seconds: the makespan.
        kind: method that found it: `critical-path`, `area`, `windows`, `kinds-lp` or `pattern-lp`;
            with `-rounded` behind it where it was rounded up to the common divisor of all times.
    """

    seconds: float
    kind: str

    @property
    def needs_solver(self) -> bool:
        """True if it is missing where the extra `bounds` is not installed."""
        return self.kind.startswith(("kinds-lp", "pattern-lp"))


Bounds = tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class ScheduledStep:
    """Place and time of a step under a baseline.

    Attributes:
        name: name of the step, as in the plan.
        node: name of the node.
        start_seconds, finish_seconds: time at which its pod is bound, and its outputs are uploaded.
        phases: time by kind of work; the rest of the time the step waits. None = it works all the
            time.
    """

    name: str
    node: str
    start_seconds: float
    finish_seconds: float
    phases: Phases | None = None


@dataclass(frozen=True)
class Comparison:
    """Schedules and bounds that a plan's figures are measured against.

    Attributes:
        lower_bound: makespan that no plan can beat.
        baselines: figures of each baseline that was asked for, by its name.
        default_schedule: schedule of kube-default, where it was compared; of several tie-breaks the
            one whose makespan is nearest to their mean.
        ordered_makespan_seconds: makespan that a plan whose steps may wait (`ordered`, gates)
            reaches in a short search, where this one may not (`ready`) and does not reach the
            bound; else None.
    """

    lower_bound: Bound
    baselines: Mapping[str, Figures]
    default_schedule: tuple[ScheduledStep, ...]
    ordered_makespan_seconds: float | None
