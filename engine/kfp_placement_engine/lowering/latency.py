"""Latency rules (LAS): how far each node is from a step's users, and which nodes count as best.

A prediction step belongs near its users (latency-aware scheduling, origins: the thesis' extender
scored the node of least latency only). Here nodes within a tolerance band of the best count as
best, a hard limit excludes nodes, and a node of unknown latency ranks last.
"""

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.durations import given_round_trip_text
from kfp_placement_engine.model.latency import LatencyTolerance
from kfp_placement_engine.model.run_graph import Notice, Step
from kfp_placement_engine.problem.problem import Booleans, Floats

UNKNOWN_EXCESS_MS = 1e6
"""What a node of unknown latency is charged: more than any latency a cluster can state."""


def round_trips(cluster: Cluster, location: str) -> Floats | None:
    """[N] round trips to the location in milliseconds, NaN = unknown; None = no such location."""
    wanted = location.lower()
    known: Mapping[str, float] | None = None
    for name, latencies in cluster.latencies.items():
        if name == location:
            known = latencies
            break
        if name.lower() == wanted and known is None:
            known = latencies
    if not known:
        return None
    return np.array([known.get(node.name, math.nan) for node in cluster.nodes])


def band_limit_ms(trips: Floats, usable: Booleans, tolerance: LatencyTolerance) -> float:
    """The largest round trip that counts as best among usable nodes; infinite if none is known."""
    known = trips[usable & ~np.isnan(trips)]
    if known.size == 0:
        return math.inf
    return tolerance.limit_ms(float(known.min()))


def excess_ms(trips: Floats, usable: Booleans, tolerance: LatencyTolerance) -> Floats:
    """[N] round trip beyond the tolerance band, UNKNOWN_EXCESS_MS where it is unknown."""
    return beyond_ms(trips, band_limit_ms(trips, usable, tolerance))


def beyond_ms(trips: Floats, limit: float) -> Floats:
    """[N] round trip beyond a limit, UNKNOWN_EXCESS_MS where it is unknown; 0 without a limit."""
    if math.isinf(limit):
        return np.zeros_like(trips)
    return np.where(np.isnan(trips), UNKNOWN_EXCESS_MS, np.maximum(0.0, trips - limit))


@dataclass(frozen=True)
class LatencyRule:
    """What latency means for a step.

    Attributes:
        location: where its users are, or "" = latency does not matter.
        nearest: it goes to the node of least round trip; else only its hard limit counts.
    """

    location: str = ""
    nearest: bool = False


def latency_rule(
    step: Step, cluster: Cluster, ruled_types: Sequence[str]
) -> tuple[LatencyRule, Notice | None]:
    """The rule for a step, and what to tell people about it.

    Steps of the ruled types go to the node of least round trip; a hard limit holds for any step
    that has a location.
    """
    nearest, limited = step.type.lower() in ruled_types, step.max_latency_ms is not None
    if not step.location:
        told = "a maximum latency is given but no location, so it cannot hold; give OurLocation"
        return LatencyRule(), Notice("no-location", told, step.task) if limited else None
    if not nearest and not limited:
        return LatencyRule(), None
    if round_trips(cluster, step.location) is not None:
        return LatencyRule(step.location, nearest), None
    return LatencyRule(), Notice(
        "unknown-location", _unknown(step, cluster, nearest=nearest), step.task
    )


def _unknown(step: Step, cluster: Cluster, *, nearest: bool) -> str:
    """What an unknown location switches off, and which one may be meant."""
    known = {name.lower(): name for name in sorted(cluster.latencies, reverse=True)}
    close = difflib.get_close_matches(step.location.lower(), known, n=1)
    names = ", ".join(sorted(cluster.latencies)[:8]) or "none"
    advice = f"did you mean {known[close[0]]!r}?" if close else f"known: {names}"
    lost = ["its latency rule"] if nearest else []
    if step.max_latency_ms is not None:
        lost.append(f"its limit of {given_round_trip_text(step.max_latency_ms)}")
    off = f"{' and '.join(lost)} {'are' if len(lost) > 1 else 'is'} off"
    return f"no node of the cluster states a latency to {step.location!r}, so {off}; {advice}"
