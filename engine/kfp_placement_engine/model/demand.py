"""Demand of a whole run at once, for whoever decides when the run may start.

A run is admitted by the peak of what it takes over time, not by the sum of its steps, most of which
never run together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kfp_placement_engine.model.pod_constraints import Labels, NodeAffinity, Toleration
from kfp_placement_engine.units.resources import Resources


@dataclass(frozen=True, slots=True)
class PodGroup:
    """Pods that request the same, on nodes of the same kind.

    Attributes:
        count: number of pods.
        requests: requests of each pod, in canonical units, without `pods`.
        node_selector, affinity, tolerations: rules about their nodes, as of a step.
    """

    count: int
    requests: Resources
    node_selector: Labels = field(default_factory=dict)
    affinity: NodeAffinity = field(default_factory=NodeAffinity)
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class Demand:
    """The most that what is left of a run takes at any one time.

    Attributes:
        peak: peak of each resource over time, in canonical units, drivers and workers included,
            `pods` too. Peaks of two resources need not be at the same time.
        accelerator_shares: part of the peak that needs nodes with an accelerator (an extended
            resource): peak of every resource over the pods with it, by accelerator.
        gangs: pods of steps that make workers, with the pod of the step itself: they work only
            when all of them run, so they are never overcommitted. The peak of each shape.
        most: the most that the run may take at once of each resource, whatever time its steps take
            and whichever conditions hold; {} = as `peak`.
    """

    peak: Resources = field(default_factory=dict)
    accelerator_shares: Mapping[str, Resources] = field(default_factory=dict)
    gangs: tuple[PodGroup, ...] = ()
    most: Resources = field(default_factory=dict)

    @property
    def of_quota(self) -> Resources:
        """The amounts that count against a quota: no run takes more, whatever its author does."""
        return {**self.peak, **self.most}
