"""The notices of a plan, and the assumed values that it rests on."""

from collections.abc import Iterable, Iterator, Sequence

from kfp_placement_engine.contract.step_types import near_marks
from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.lowering.work import duration_of
from kfp_placement_engine.model.cluster import Cluster, Node
from kfp_placement_engine.model.concurrency import alternatives
from kfp_placement_engine.model.demand import PodGroup
from kfp_placement_engine.model.history import LearnedWidth
from kfp_placement_engine.model.node_rules.constraints import objections
from kfp_placement_engine.model.node_rules.images import UNKNOWN_IMAGE_BYTES, SizeSource, canonical
from kfp_placement_engine.model.node_rules.latency import unused_locations
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import RunGraph, Step, StepKind, uncounted_waits
from kfp_placement_engine.model.step_names import listed, task_of
from kfp_placement_engine.planning.author_languages import language_of
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.units.durations import format_duration
from kfp_placement_engine.units.quantities import format_resource, format_resources
from kfp_placement_engine.units.resources import UNSTATED, Resources, with_pod

_NAMED = 5
"""Largest number of names in a notice."""


def notices_of(graph: RunGraph, cluster: Cluster, lowered: Lowered) -> list[Notice]:
    """Return the notices about marks, locations, images and pods that steps make."""
    return [
        *_unmarked_steps(graph, lowered.options.marked_only),
        *near_marks(graph.steps, lowered.options.latency_ruled_types),
        *unused_locations(graph.steps, lowered.options.latency_ruled_types),
        *_unknown_images(graph, lowered),
        *_pods_without_room(graph, cluster),
        *_unknown_pauses(graph),
    ]


def _unknown_pauses(graph: RunGraph) -> Iterable[Notice]:
    """Yield notices on steps without pod whose time nobody states."""
    pauses = {step.task: step for step in uncounted_waits(graph.steps)}
    for task, step in pauses.items():
        remedy = f"if you know it, give it (--duration {task:.80}=10m, durations in Python)"
        if step.kind is StepKind.SUSPEND:
            problem = (
                "it waits for a person, or for what else ends its pause; that time counts as 0"
            )
            yield Notice("waits-for-person", f"{problem}; {remedy}", task)
        else:
            problem = (
                f"a step of the kind {step.kind} has no pod of its own, and its time counts as 0"
            )
            yield Notice("no-pod", f"{problem}; {remedy}", task)


def _pods_without_room(graph: RunGraph, cluster: Cluster) -> Iterable[Notice]:
    """Return notices on pods that steps make and that have no room together, even alone."""
    # Iterations that make the same share their workers.
    makers = {(step.task, id(step.workers)): step for step in graph.steps if step.workers}
    notices: dict[Notice, None] = {}
    for step in makers.values():
        for group in step.workers:
            open_nodes = _open_nodes(group, cluster)
            room = sum(_fitting(group.requests, node.allocatable) for node in open_nodes)
            if room < group.count:
                each = " ".join(f"{k}={v}" for k, v in format_resources(group.requests).items())
                fit = f"no more than {room:,} of the" if room else "no node has room for one of the"
                message = (
                    f"{fit} {_count(group.count, 'pod')} that it makes ({each} each)"
                    f"{' have room at once' if room else ''}, even if nothing else runs"
                )
                if others := len(cluster.nodes) - len(open_nodes):
                    nodes = _count(others, "node")
                    message += f"; selector, affinity or taints keep them off {nodes}"
                notices[Notice("made-pods-without-room", message, step.task)] = None
    return notices


def _open_nodes(group: PodGroup, cluster: Cluster) -> list[Node]:
    """Return the nodes that the rules of pods allow."""
    rules = (group.node_selector, group.affinity, group.tolerations)
    against = objections(*rules, cluster.nodes, linux_only=False)
    return [node for node, each in zip(cluster.nodes, against, strict=True) if each is None]


def _fitting(requests: Resources, allocatable: Resources) -> int:
    """Return the number of pods that an empty node has room for."""
    needs = with_pod(requests)
    room = {**UNSTATED, **allocatable}
    return min(room.get(name, 0) // amount for name, amount in needs.items() if amount)


def _unknown_images(graph: RunGraph, lowered: Lowered) -> list[Notice]:
    """Return one notice for all images of unknown size."""
    unknown = _images(graph, lowered, SizeSource.UNKNOWN)
    if not unknown:
        return []
    size = format_resource("memory", UNKNOWN_IMAGE_BYTES)
    count = _count(len(unknown), "image")
    each = " each" if len(unknown) > 1 else ""
    return [
        Notice(
            "unknown-images",
            f"no node reports {count}{_named(unknown.values())} and nobody states a size:"
            f" {size}{each} is assumed to be pulled; state it with"
            f" {language_of(graph).image_size}, or under images in a Cluster file",
        )
    ]


def _unmarked_steps(graph: RunGraph, marked_only: bool) -> list[Notice]:
    executors = [step for step in graph.steps if step.kind is StepKind.CONTAINER]
    unmarked = [step for step in executors if not (step.scheduler or step.unplanned)]
    opted_out = [step for step in executors if step.unplanned and not step.scheduler]
    if graph.source == "wfformat":
        return []
    texts = []
    if unmarked:
        verb = "is" if len(unmarked) == 1 else "are"
        some = f"{len(unmarked)} of {len(executors)} steps {verb} not marked{_tasks(unmarked)}:"
        count = "no step is marked: all are" if len(unmarked) == len(executors) else some
        texts.append(f"{count} {_effect('unmarked steps', marked_only)}")
    if opted_out:
        verb = "opts" if len(opted_out) == 1 else "opt"
        count = f"{len(opted_out)} of {len(executors)} steps {verb} out{_tasks(opted_out)}"
        effect = _effect("it" if len(opted_out) == 1 else "them", marked_only)
        texts.append(f"{count} with {language_of(graph).opting_out}: {effect}")
    return [Notice("unmarked-steps", each) for each in texts]


def _effect(steps: str, marked_only: bool) -> str:
    """Return in words where steps without a mark go."""
    if marked_only:
        return "left to the default scheduler"
    return (
        f"planned as if marked; in a cluster the default scheduler places {steps}"
        " (--marked-only, marked_only in Python, shows that)"
    )


def used_assumptions(graph: RunGraph, cluster: Cluster, lowered: Lowered) -> tuple[str, ...]:
    """Return the assumed values that the plan rests on, each with its number of uses and places."""
    steps, assumptions = graph.steps, lowered.options.assumptions
    texts: list[str] = []
    without = [
        step
        for step in steps
        if step.duration_seconds is None
        if step.kind is StepKind.CONTAINER and not step.assumed_cached
    ]
    if without:
        seconds = format_duration(duration_of(without[0], assumptions))
        of = f"{len(without)} of {len(steps)} steps"
        texts.append(f"run time {seconds} for {of}{_tasks(without)}")
    unsized = sum(each.size_bytes is None for step in steps for each in step.inputs)
    if unsized:
        readers = [s for s in steps if any(each.size_bytes is None for each in s.inputs)]
        count = _count(unsized, "input")
        texts.append(f"size {assumptions.output_bytes} B for {count}{_tasks(readers)}")
    texts += _assumed_images(graph, lowered)
    drivers = sum(group.has_driver for group in graph.groups)
    drivers += sum(step.has_driver for step in steps)
    if drivers:
        seconds = format_duration(assumptions.driver_seconds)
        texts.append(f"{seconds} for each of {_count(drivers, 'driver pod')}")
    rates = _assumed_rates(graph, cluster, assumptions)
    return (*texts, *_assumed_widths(graph), *rates, *_assumed_course(steps))


def _assumed_course(steps: Sequence[Step]) -> Iterator[str]:
    """Yield what the run is assumed to do at loops and conditions, and after failures."""
    if iterations := sum(step.assumed for step in steps):
        yield f"{_count(iterations, 'step')} of loops whose width is known only at run time"
    awaited = [step for step in steps if not step.after_failure]
    if conditional := sum(step.is_conditional for step in awaited):
        yield f"conditions of {_count(conditional, 'step')} hold (worst case)"
    if excluding := alternatives(step.branches for step in awaited):
        yield (
            f"of branches that exclude each other{_named(excluding, '; ')} one runs; the end is"
            " that of the one that takes longest"
        )
    if failing := len(steps) - len(awaited):
        yield f"no step fails: the end does not wait for {_count(failing, 'step')}"


def _assumed_images(graph: RunGraph, lowered: Lowered) -> list[str]:
    texts = []
    for source in (SizeSource.DEFAULT, SizeSource.UNKNOWN):
        images = _images(graph, lowered, source)
        if images:
            size = _size_text(lowered.image_sizes[next(iter(images))].size_bytes)
            count = _count(len(images), "image")
            texts.append(f"size {size} for {count} that no node reports{_named(images.values())}")
    usual = {
        name: _size_text(lowered.image_sizes[image].size_bytes)
        for image, name in _images(graph, lowered, SizeSource.USUAL).items()
    }
    if usual:
        count = _count(len(usual), "image")
        names = _named(f"{name} {size}" for name, size in usual.items())
        texts.append(f"usual size for {count} that no node reports{names}")
    return texts


def _images(graph: RunGraph, lowered: Lowered, source: SizeSource) -> dict[str, str]:
    """Return the images whose size has a source: canonical reference -> name that steps use."""
    names: dict[str, str] = {}
    for step in graph.steps:
        if step.image and lowered.image_sizes[canonical(step.image)].source is source:
            names.setdefault(canonical(step.image), step.image)
    return names


def _size_text(size_bytes: int) -> str:
    text = format_resource("memory", size_bytes)
    return f"{text} B" if text.isdecimal() else text


def _assumed_widths(graph: RunGraph) -> list[str]:
    widths: dict[tuple[int, LearnedWidth | None], list[str]] = {}
    for group in graph.groups:
        if group.width_assumed:
            widths.setdefault((group.width, group.learned_width), []).append(group.name)
    return [
        f"width {width}{_of_runs(learned)} for {_count(len(names), 'loop')}"
        f"{_named(map(task_of, names))}"
        for (width, learned), names in widths.items()
    ]


def _of_runs(learned: LearnedWidth | None) -> str:
    """Return in words the past runs that a width rests on, or ""."""
    if learned is None:
        return ""
    if learned.width != learned.planned:
        runs = "the last run" if learned.runs == 1 else f"most of the last {learned.runs} runs"
        return f" ({runs} had no iteration)"
    return f", that of {_count(learned.runs, 'run')},"


def _assumed_rates(graph: RunGraph, cluster: Cluster, assumptions: Assumptions) -> list[str]:
    if graph.direct_transfers:
        return [f"{assumptions.link_bytes_per_second / 1e6:g} MB/s between two nodes"]
    if all(node.store_bytes_per_second is not None for node in cluster.nodes):
        return []
    rate = f"{assumptions.store_bytes_per_second / 1e6:g} MB/s"
    return [f"{rate} between a node and the object store"]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _tasks(steps: Iterable[Step]) -> str:
    return _named(step.task for step in steps)


def _named(names: Iterable[str], joint: str = ", ") -> str:
    """Return a few of the names, each once: ` (a, b, ...)`."""
    return f" ({listed(list(dict.fromkeys(names)), _NAMED, joint)})"
