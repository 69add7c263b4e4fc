"""Notices about nodes that kube-scheduler may choose and that a plan leaves out or cannot judge."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kfp_placement_engine.lowering.pods import is_kfp
from kfp_placement_engine.model.cluster import Cluster, Node
from kfp_placement_engine.model.node_rules.constraints import (
    ARCHITECTURE_LABEL,
    OS_LABEL,
    USUAL_ARCHITECTURE,
    architecture,
    objections,
    runs_windows,
)
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import RunGraph, Step, StepKind
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.planning.author_languages import AuthorLanguage, language_of
from kfp_placement_engine.units.resources import DISK

_NAMED = 5
"""Largest number of names in a notice."""


def node_notices(graph: RunGraph, cluster: Cluster) -> list[Notice]:
    """Return the notices about disk that nodes do not state, and about nodes of other platforms.

    Args:
        graph: run that is planned.
        cluster: cluster that is planned on.
    """
    notices = list(_uncounted_disk(graph, cluster.nodes))
    if any(runs_windows(node) or architecture(node) for node in cluster.nodes):
        platforms = _platforms(graph, cluster.nodes)
        notices += _windows(platforms.windows, linux_only=is_kfp(graph))
        notices += _architectures(platforms.mixed, language_of(graph))
    return notices


def _uncounted_disk(graph: RunGraph, nodes: Sequence[Node]) -> Iterator[Notice]:
    asking = dict.fromkeys(step.task for step in graph.steps if step.requests.get(DISK))
    unstated = [node.name for node in nodes if DISK not in node.allocatable]
    if asking and unstated:
        some = f"{listed(unstated, _NAMED)} {'states' if len(unstated) == 1 else 'state'} no {DISK}"
        where = f"no node states {DISK}" if len(unstated) == len(nodes) else some
        yield Notice(
            "disk-not-counted",
            f"{where}, so the disk that {listed(list(asking), _NAMED)}"
            f" {'asks' if len(asking) == 1 else 'ask'} for is not counted there; state it under"
            f" extended of the node, for example {DISK}: 100Gi",
        )


class _Platforms(NamedTuple):
    """Nodes that kube-scheduler could choose for steps that do not select a platform.

    Attributes:
        windows: nodes with Windows, which plans leave out.
        mixed: nodes of each architecture, where the nodes of a step have several.
    """

    windows: list[Node]
    mixed: dict[str, list[Node]]


def _platforms(graph: RunGraph, nodes: Sequence[Node]) -> _Platforms:
    windows, mixed = dict[str, Node](), dict[str, dict[str, Node]]()
    for step in _unlike_in_rules(graph.steps):
        filtered = objections(
            step.node_selector, step.affinity, step.tolerations, nodes, linux_only=is_kfp(graph)
        )
        open_nodes = [node for node, each in zip(nodes, filtered, strict=True) if each is None]
        for node, against in zip(nodes, filtered, strict=True):
            if against is not None and against.code == "windows":
                windows[node.name] = node
        if len({architecture(node) for node in open_nodes} - {""}) > 1:
            for node in open_nodes:
                mixed.setdefault(architecture(node), {})[node.name] = node
    return _Platforms(
        list(windows.values()), {key: list(named.values()) for key, named in mixed.items()}
    )


def _unlike_in_rules(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield one step of those with equal rules about nodes, if they have pods of their own."""
    seen = set[object]()
    for step in steps:
        key = (*sorted(step.node_selector.items()), step.affinity, step.tolerations)
        if step.kind is StepKind.CONTAINER and key not in seen:
            seen.add(key)
            yield step


def _windows(nodes: Sequence[Node], *, linux_only: bool) -> Iterator[Notice]:
    if not nodes:
        return
    names, one = listed([node.name for node in nodes], _NAMED), len(nodes) == 1
    images = "KFP's images are" if linux_only else "images are taken to be"
    kept = "all steps" if linux_only else "steps that do not select Windows"
    selector = "" if linux_only else f", or select {OS_LABEL}: linux in the steps"
    yield Notice(
        "mixed-nodes",
        f"{names} {'runs' if one else 'run'} Windows, and {images} for Linux: plans and the"
        f" comparison keep {kept} off {'it' if one else 'them'}, but"
        f" kube-scheduler may put their pods there, which then do not start; ask your admin for a"
        f" taint{selector}",
    )


def _architectures(mixed: dict[str, list[Node]], language: AuthorLanguage) -> Iterator[Notice]:
    """Yield one notice for each architecture beside the usual one."""
    usual = USUAL_ARCHITECTURE if USUAL_ARCHITECTURE in mixed else max(mixed, default="")
    for other, nodes in sorted(mixed.items()):
        if other in ("", usual):
            continue
        names = listed([node.name for node in nodes], _NAMED)
        verb = "is" if len(nodes) == 1 else "are"
        (line,) = language.node_selectors({ARCHITECTURE_LABEL: usual})
        yield Notice(
            "mixed-nodes",
            f"steps may go to {names}, which {verb} {other} where others are {usual}: a pod runs"
            f" there only if all its images, those of KFP and Argo too, are made for {other}; if"
            f" not, keep steps to {usual}: {line}",
        )
