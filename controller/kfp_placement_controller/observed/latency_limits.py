"""Hard latency limits: the nodes that a pod must require when its scheduling gate is removed.

kube-scheduler knows no round trips, so the pod must require the nodes by name, and its
requirements cannot be changed once the gate is off. The nodes are named by the host label that
each kubelet sets: a term takes only one value of the field `metadata.name`, and the terms of a pod
may be narrowed but not multiplied.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_engine.contract.keys import HOST_LABEL, NO_NODE_WITHIN
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.model.node_rules.latency import UNKNOWN_MS, hard_limit_ms, is_within
from kfp_placement_engine.units.durations import latency_text

MAX_HOSTS = 100
"""Limit of nodes that a pod requires: each of them is a line in the pod's spec."""


@dataclass(frozen=True, slots=True)
class HardLimit:
    """A hard latency limit of a pod, and the nodes that keep it.

    Attributes:
        limit_ms: longest round trip to the pod's location, in milliseconds.
        hosts: host labels of the nodes within the limit, the nearest first.
    """

    limit_ms: float
    hosts: tuple[str, ...]

    @property
    def required(self) -> tuple[str, ...]:
        """Host labels that the pod requires; if no node keeps the limit, one that no node has.

        kube-scheduler then calls the pod unschedulable, and the host label says why.
        """
        return self.hosts or (f"{NO_NODE_WITHIN}{latency_text(self.limit_ms)}",)


def limit_ms(pod: ObservedPod, rules: PlacementPolicySpec) -> float | None:
    """Return the limit of a pod, its own or the policy's for its type; None = it has no limit."""
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
    """Return the hard limit of a pod and the nodes that keep it; None = it has no limit.

    No limit applies where no node states a round trip to the pod's location, or while placement is
    paused: pods are then scheduled as if we did not exist. A host label is left out if a node
    beyond the limit has it too.

    Args:
        pod: pod whose gate is removed.
        rules: spec of the policy.
        round_trips_ms: node -> round trip to the pod's location, where it is known.
        labels: labels of every node, by its name.
        planned: planned node, which comes first if it is within the limit; "" = none.
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
