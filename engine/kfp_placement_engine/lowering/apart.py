"""Required anti-affinity between pods: those that may not share a node, as made-up resources.

Each selector is a resource of which every node has a whole. A pod that may not be beside the pods
of the selector takes all of it, another pod that the selector matches takes a little: so the pods
that take a little may share a node, and no other two. Simulation, baselines and bounds need no rule
of their own. A pod that would have to match its own selector for that, and does not, is named.

kube-scheduler's filter is InterPodAffinity (`pkg/scheduler/framework/plugins`, v1.36.3), where
anti-affinity of a pod keeps away pods that come later, too.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.node_rules.constraints import holds
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.pod_constraints import PodSelector, Requirement
from kfp_placement_engine.model.run_graph import RunGraph, Step, StepKind

WHOLE = 2**20
"""Amount of each made-up resource on a node; more pods than that are on no node."""

_MADE_UP = "anti-affinity "
"""Beginning of the names of made-up resources; those of Kubernetes have no space in them."""

Shares = tuple[tuple[str, int], ...]
"""Amounts of made-up resources that a pod takes, by name."""


def is_made_up(resource: str) -> bool:
    """Return whether a resource is one that nodes have for rules of this module only."""
    return resource.startswith(_MADE_UP)


@dataclass
class _Group:
    """Pods that may not be beside the pods of one selector.

    Attributes:
        selector: selector that they have.
        namespace: namespace of all pods concerned.
        run: index of the run of all pods concerned; None = they may be of several.
        tasks: tasks of these pods.
        matches_all: whether the selector matches all of these pods themselves.
    """

    selector: PodSelector
    namespace: str
    run: int | None
    tasks: dict[str, None] = field(default_factory=dict)
    matches_all: bool = True

    def covers(self, run: int, graph: RunGraph) -> bool:
        """Return whether pods of a run are concerned."""
        return self.namespace == graph.namespace and self.run in (None, run)


class ApartRules:
    """Rules of the pods of some runs that may not share a node.

    Attributes:
        wholes: amounts of the made-up resources that every node has, by name.
        notices: notices on rules that plans do not follow.
    """

    def __init__(self, runs: Sequence[ActiveRun]) -> None:
        """Collect the rules of the steps of runs."""
        groups = _groups(runs).values()
        self._groups: dict[str, _Group] = {}
        for group in groups:
            if group.matches_all:
                name = f"{_MADE_UP}({_text(group.selector.requirements)})"
                same = sum(each.startswith(name) for each in self._groups)
                self._groups[f"{name} {same + 1}" if same else name] = group
        self._runs = runs
        self._shares: dict[Hashable, Shares] = {}
        self.wholes: Mapping[str, int] = dict.fromkeys(self._groups, WHOLE)
        self.notices = tuple(
            Notice(
                "pod-affinity",
                f"its anti-affinity to pods with {_text(group.selector.requirements)} is not in"
                " the plan, since it does not have these labels itself: its pod may not go to its"
                " planned node",
                task,
            )
            for group in groups
            if not group.matches_all
            for task in group.tasks
        )

    def shares(self, run: int, step: Step) -> Shares:
        """Return what a step's pod takes of the made-up resources.

        Args:
            run: index of the step's run.
            step: the step.
        """
        if not self._groups or step.kind is not StepKind.CONTAINER:
            return ()
        # Iterations of a loop share their labels.
        key = (run, id(step.labels), step.apart_from)
        shares = self._shares.get(key)
        if shares is None:
            shares = self._shares[key] = tuple(self._taken(run, step))
        return shares

    def _taken(self, run: int, step: Step) -> Iterable[tuple[str, int]]:
        for name, group in self._groups.items():
            if group.covers(run, self._runs[run].graph):
                if group.selector in step.apart_from:
                    yield name, WHOLE
                elif _matches(group.selector, step):
                    yield name, 1


def _groups(runs: Sequence[ActiveRun]) -> dict[Hashable, _Group]:
    groups: dict[Hashable, _Group] = {}
    for number, run in enumerate(runs):
        for step in run.graph.steps:
            for selector in step.apart_from:
                of_run = number if selector.is_own_run else None
                key = (selector, run.graph.namespace, of_run)
                group = groups.setdefault(key, _Group(selector, run.graph.namespace, of_run))
                group.tasks[step.task] = None
                group.matches_all &= _matches(selector, step)
    return groups


def _matches(selector: PodSelector, step: Step) -> bool:
    return all(holds(each, step.labels) for each in selector.requirements)


def _text(requirements: Sequence[Requirement]) -> str:
    texts = []
    for each in requirements:
        values = ",".join(each.values)
        is_equal = each.operator == "In" and len(each.values) == 1
        texts.append(f"{each.key}={values}" if is_equal else f"{each.key} {each.operator} {values}")
    return f"{', '.join(texts).strip():.80}" or "any label"
