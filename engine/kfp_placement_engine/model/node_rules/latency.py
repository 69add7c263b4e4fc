"""Latency rules (LAS): which steps go near their users, and which nodes are near enough.

A prediction step belongs near its users (latency-aware scheduling, origins: the thesis' extender
scored the node of least latency only). Here nodes within a tolerance band of the best count as
best, a hard limit excludes nodes, and a node of unknown latency ranks last.

What is asked of one node at a time is decided here. Limits and bands of whole tables of round trips
are in `lowering/tables`; a test compares both.
"""

import difflib
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.node_rules.round_trips import latencies_to
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import Step, StepKind
from kfp_placement_engine.units.durations import given_round_trip_text

UNKNOWN_MS = math.inf
"""The round trip of a node for which none is known: it keeps no limit."""


@dataclass(frozen=True)
class LatencyTolerance:
    """Nodes within the larger of both of the best round trip count as best.

    Attributes:
        milliseconds: the distance above it.
        share: the distance above it, as a share of it.
    """

    milliseconds: float = 0.5
    share: float = 0.05

    def limit_ms(self, best_ms: float) -> float:
        """Return the largest round trip that counts as best."""
        return best_ms + max(self.milliseconds, self.share * best_ms)

    @property
    def text(self) -> str:
        """Text for people: `max(0.5 ms, 5%)`."""
        milliseconds = given_round_trip_text(self.milliseconds)
        return f"max({milliseconds}, {100 * self.share:g}%)"


@dataclass(frozen=True)
class LatencyRule:
    """Latency rule of a step.

    Attributes:
        location: place of its users, or "" = latency does not matter.
        nearest: whether it goes to the node of least round trip; else only its hard limit counts.
    """

    location: str = ""
    nearest: bool = False


def policy_tolerance(
    tolerance_ms: float | None, tolerance_percent: float | None
) -> LatencyTolerance:
    """Return the tolerance of a policy.

    Args:
        tolerance_ms: nodes within this of the best count as best; None = as usual.
        tolerance_percent: tolerance in percent of the best round trip; None = as usual.
    """
    usual = LatencyTolerance()
    return LatencyTolerance(
        milliseconds=usual.milliseconds if tolerance_ms is None else tolerance_ms,
        share=usual.share if tolerance_percent is None else tolerance_percent / 100,
    )


def policy_types(step_types: Iterable[str]) -> tuple[str, ...]:
    """Return step types as a policy names them, in any case -> as `is_ruled` compares them."""
    return tuple(each.lower() for each in step_types)


def is_ruled(step_type: str, ruled_types: Collection[str]) -> bool:
    """Return whether steps of a type go to the node of least round trip to their location.

    Args:
        step_type: type in any case.
        ruled_types: types that do, in lower case.
    """
    return step_type.lower() in ruled_types


def hard_limit_ms(location: str, own_ms: float | None, assumed_ms: float | None) -> float | None:
    """Return the hard limit of a step's round trip, or None if it has none, as without a location.

    Args:
        location: location of the step, or "".
        own_ms: limit that the step states; None = none.
        assumed_ms: the limit of a step without one of its own; None = nothing.
    """
    if not location:
        return None
    return assumed_ms if own_ms is None else own_ms


def is_within(latency_ms: float, limit_ms: float) -> bool:
    """Return whether a round trip keeps a limit; an unknown one (NaN, `UNKNOWN_MS`) keeps none."""
    return latency_ms <= limit_ms


def excess_ms(latency_ms: float, limit_ms: float) -> float:
    """Return the part of a round trip that is beyond a limit."""
    return max(0.0, latency_ms - limit_ms)


def band_limit_ms(latencies_ms: Iterable[float], tolerance: LatencyTolerance) -> float | None:
    """Return the largest round trip that counts as best among nodes, or None if none is known.

    Args:
        latencies_ms: round trips of the nodes; `UNKNOWN_MS` where one is unknown.
        tolerance: band within which round trips count as best.
    """
    best_ms = min(latencies_ms, default=UNKNOWN_MS)
    return None if best_ms == UNKNOWN_MS else tolerance.limit_ms(best_ms)


def latency_rule(
    step: Step, cluster: Cluster, ruled_types: Collection[str]
) -> tuple[LatencyRule, Notice | None]:
    """Return the rule for a step, and a notice if what it states has no effect, else None.

    Steps of the ruled types go to the node of least round trip; a hard limit applies to any step
    that has a location.
    """
    nearest, limited = is_ruled(step.type, ruled_types), step.max_latency_ms is not None
    if not step.location:
        message = "max_latency changes nothing without location; say one, such as HOME-EDGE"
        return LatencyRule(), Notice("no-location", message, step.task) if limited else None
    if not nearest and not limited:
        return LatencyRule(), None
    if latencies_to(step.location, cluster.latencies):
        return LatencyRule(step.location, nearest), None
    return LatencyRule(), Notice(
        "unknown-location", _unknown_text(step, cluster, nearest=nearest), step.task
    )


def unused_locations(steps: Iterable[Step], ruled_types: Collection[str]) -> list[Notice]:
    """Return notices of locations from which nothing follows, one for each task.

    A location that all marked steps have was given to the whole pipeline: it is used if one of them
    follows it, and one notice tells of all of them if none does.

    Args:
        steps: steps of a run.
        ruled_types: step types that follow the latency rule, lower case.
    """
    tasks = {step.task: step for step in steps if step.kind is StepKind.CONTAINER}.values()
    idle = [step for step in tasks if step.location and not _follows(step, ruled_types)]
    marked = [step for step in tasks if step.scheduler]
    if len(marked) > 1 and marked[0].location and len({step.location for step in marked}) == 1:
        if not any(_follows(step, ruled_types) for step in marked):
            return [
                Notice(
                    "location-unused",
                    f"location {marked[0].location!r} of all steps changes nothing, as no step has"
                    f" a type that follows it (types that do: {_listed(ruled_types)})",
                )
            ]
        idle = [step for step in idle if not step.scheduler]
    return [Notice("location-unused", _unused(step, ruled_types), step.task) for step in idle]


def _follows(step: Step, ruled_types: Collection[str]) -> bool:
    """Return whether its location counts; a hard limit applies whatever the type."""
    return is_ruled(step.type, ruled_types) or step.max_latency_ms is not None


def _unused(step: Step, ruled_types: Collection[str]) -> str:
    own = f"type {step.type!r} does not follow it" if step.type else "the step has no type"
    return (
        f"location {step.location!r} changes nothing, as {own} (types that do:"
        f" {_listed(ruled_types)}); max_latency='20ms' sets a limit for any type"
    )


def _listed(ruled_types: Collection[str]) -> str:
    none = "none, as latencyRules.stepTypes of the PlacementPolicy is empty"
    return ", ".join(ruled_types) or none


def _unknown_text(step: Step, cluster: Cluster, *, nearest: bool) -> str:
    """Return the text about an unknown location: what it switches off, and which may be meant."""
    locations = {name.lower(): name for name in sorted(cluster.latencies, reverse=True)}
    close = difflib.get_close_matches(step.location.lower(), locations, n=1)
    names = ", ".join(sorted(cluster.latencies)[:8]) or "none"
    advice = f"did you mean {locations[close[0]]!r}?" if close else f"known: {names}"
    lost = ["its latency rule"] if nearest else []
    if step.max_latency_ms is not None:
        lost.append(f"its limit of {given_round_trip_text(step.max_latency_ms)}")
    off = f"{' and '.join(lost)} {'are' if len(lost) > 1 else 'is'} off"
    return f"no node of the cluster states a latency to {step.location!r}, so {off}; {advice}"
