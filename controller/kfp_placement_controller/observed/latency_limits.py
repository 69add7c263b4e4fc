"""Hard limits of the round trip, for a pod whose gate comes off: the nodes that keep them.

Its own scheduler knows no round trips, so the pod must require the nodes by name, and what it
requires cannot be changed once its gate is off. They are named by the label that kubelets give
themselves: of the field `metadata.name` a term takes one value only, and a pod's own terms may be
narrowed but not multiplied.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_engine.contract.keys import HOST_LABEL, NO_NODE_WITHIN
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.model.latency import UNKNOWN_MS, hard_limit_ms, is_within
from kfp_placement_engine.units.durations import latency_text

MAX_HOSTS = 100
"""Nodes that a pod requires: a line for each of them in its spec, for as long as it exists."""


@dataclass(frozen=True, slots=True)
class HardLimit:
    """Where a pod under a hard limit may go.

    Attributes:
        limit_ms: of the round trip to its location.
        hosts: the nodes within it, by their host label, the nearest first.
    """

    limit_ms: float
    hosts: tuple[str, ...]

    @property
    def required(self) -> tuple[str, ...]:
        """What the pod requires; where no node keeps the limit, a host that there is none of.

        Then kube-scheduler calls the pod unschedulable, and the name says why.
        """
        return self.hosts or (f"{NO_NODE_WITHIN}{latency_text(self.limit_ms)}",)


def limit_ms(pod: ObservedPod, rules: PlacementPolicySpec) -> float | None:
    """The limit of a pod: its own, else the policy's for its type; None = it has none."""
    assumed = rules.defaults.of_type(pod.step_type)
    assumed_ms = None if assumed is None else assumed.max_latency_ms
    return hard_limit_ms(pod.location, pod.max_latency_ms, assumed_ms)


def hard_limit(
    pod: ObservedPod,
    rules: PlacementPolicySpec,
    round_trips_ms: Mapping[str, float],
    labels: Mapping[str, Mapping[str, str]],
    planned: str = "",
) -> HardLimit | None:
    """Where a pod may go; None = there is no limit.

    There is none either where no node states a round trip to its location, nor while placement is
    paused: pods then go as if we were not there. A host label that a node beyond the limit has as
    well names nobody.

    Args:
        pod: the pod whose gate comes off.
        rules: the policy's.
        round_trips_ms: node -> round trip to the pod's location, where it is known.
        labels: of every node.
        planned: the node to be named in any case if it is within the limit.
    """
    limit = limit_ms(pod, rules)
    if limit is None or rules.paused or not round_trips_ms:
        return None
    within = {name for name in labels if is_within(round_trips_ms.get(name, UNKNOWN_MS), limit)}
    beyond = {labels[name].get(HOST_LABEL) for name in labels.keys() - within}
    nearest = sorted(within, key=lambda name: (name != planned, round_trips_ms[name], name))
    hosts = dict.fromkeys(labels[name].get(HOST_LABEL, "") for name in nearest)
    return HardLimit(
        limit, tuple(host for host in hosts if host and host not in beyond)[:MAX_HOSTS]
    )
