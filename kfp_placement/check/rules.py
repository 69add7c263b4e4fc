"""What would surprise about a run, rule by rule; reads a `RunGraph`, needs no kfp."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from kfp_placement.check.findings import CheckReport, Finding, Level
from kfp_placement.check.marks import (
    container_tasks,
    guessed_types,
    ineffective_marks,
    unmarked_steps,
)
from kfp_placement.planning import PlanRequest, PreparedRun, prepare
from kfp_placement.remedies import GPU, accelerated_by, accelerator_line
from kfp_placement_engine.contract.keys import (
    LOCATION_LABEL,
    SCHEDULER_LABEL,
    TYPE_LABEL,
    UNPLANNED_LABEL,
)
from kfp_placement_engine.model.constraints import shared_modes
from kfp_placement_engine.model.run_graph import Notice, RunGraph, Step, StepKind
from kfp_placement_engine.model.step_names import listed, task_of
from kfp_placement_engine.plans.progress import Progress, no_progress
from kfp_placement_engine.views.formatting import counted

_MARK_LABELS = frozenset({TYPE_LABEL, LOCATION_LABEL, SCHEDULER_LABEL, UNPLANNED_LABEL})
_SAID_HERE = frozenset(
    {"location-unused", "near-scheduler", "near-type", "no-location", "unmarked-steps"}
)
"""Notices of the planner that a rule here gives, with or without a cluster."""

_NATIVE_RESOURCES = frozenset({"cpu", "ephemeral-storage", "memory"})
"""Resources that have no domain."""

_NAMED = 5
"""Steps that a finding on several names; JSON has all."""

_REFUSED = frozenset({"invalid-label", "parameter-name", "request-above-limit"})
"""Notices of the readers about pods that Kubernetes refuses, or runs that KFP's backend does."""

# What fits nowhere is known before the search begins.
_OPTIONS: dict[str, Any] = {"budget_seconds": 0.05, "compare": ()}
"""How a check plans on a cluster."""


def checked(request: PlanRequest, progress: Progress = no_progress) -> CheckReport:
    """Apply every rule to the run that a request means.

    Args:
        request: what somebody asks; where it names a cluster, its PlacementPolicy says which types
            follow a location and what is assumed of steps by their type.
        progress: told how far reading is.

    Raises:
        EngineError: as for `prepare`; or a cluster that cannot be planned with.
        ClusterError: the live cluster refuses, or gives no answer.
    """
    return check_run(prepare(replace(request, options=_OPTIONS), progress))


def check_run(prepared: PreparedRun) -> CheckReport:
    """Apply every rule to a run; a cluster without nodes stands for none.

    Raises:
        PlanningError: a cluster that cannot be planned with.
    """
    run, past = prepared.run, prepared.known.past
    findings: list[Finding] = []
    if past is not None:
        # Here and not above: most checks are made without, and it takes long to import.
        from kfp_placement.check.past_runs import hints_off, memory_off, wrong_speeds

        findings += [*hints_off(prepared.as_read, past), *memory_off(run, past)]
        findings += wrong_speeds(prepared.known.histories, prepared.cluster)
    ruled = prepared.options.latency_ruled_types
    findings += [*unmarked_steps(run), *guessed_types(run, ruled), *ineffective_marks(run, ruled)]
    findings += [finding for rule in _RULES for finding in rule(run)]
    findings += _notices(run.notices)
    if prepared.cluster.nodes:
        findings += _on_cluster(prepared)
    order = list(Level)
    unique = dict.fromkeys(findings)
    return CheckReport(run.name, tuple(sorted(unique, key=lambda item: order.index(item.level))))


def _durations(graph: RunGraph) -> Iterator[Finding]:
    tasks = list(container_tasks(graph))
    assumed = [step for step in tasks if step.is_guessed]
    if not assumed:
        return
    everything = len(assumed) == len(tasks)
    some = f"{len(assumed)} of {len(tasks)} steps {'has' if len(assumed) == 1 else 'have'}"
    what = f"{'no step has a' if everything else f'{some} no'} duration"
    yield Finding(
        Level.WARNING if everything else Level.NOTE,
        "no-durations" if everything else "some-durations",
        f"{what}{'' if everything else _named(assumed)}, so a run time is assumed; say"
        " duration='20m' in place() or @placed, since a plan is only as good as the run times are",
        steps=_task_names(assumed),
    )


def _sizes(graph: RunGraph) -> Iterator[Finding]:
    tasks = {step.name: step.task for step in graph.steps}
    unsized = {
        f"{tasks[each.producer]}.{each.key}": tasks[each.producer]
        for step in graph.steps
        for each in step.inputs
        if each.size_bytes is None and each.producer in tasks
    }
    if unsized:
        one, key = len(unsized) == 1, next(iter(unsized)).rpartition(".")[2]
        yield Finding(
            Level.NOTE,
            "no-sizes",
            f"{len(unsized):,} {'output has' if one else 'outputs have'} no size but"
            f" {'is' if one else 'are'} read ({listed(list(unsized), _NAMED)}), and a size is"
            " assumed, 0 unless the cluster says otherwise; say outputs={"
            f"{key!r:.60}: '50Mi'}} in place() or @placed",
            steps=tuple(dict.fromkeys(unsized.values())),
        )


def _requests(graph: RunGraph) -> Iterator[Finding]:
    without = [step for step in container_tasks(graph) if not step.requests]
    if without:
        yield Finding(
            Level.NOTE,
            "no-requests",
            f"{counted(len(without), 'step')}"
            f" {'requests' if len(without) == 1 else 'request'} nothing{_named(without)}: hardly"
            " any room is reserved, so that many may share a node; say cpu= and memory= in place(),"
            " or set_cpu_request and set_memory_request",
            steps=_task_names(without),
        )


def _named(steps: Sequence[Step]) -> str:
    return f" ({listed(_task_names(steps), _NAMED)})"


def _task_names(steps: Sequence[Step]) -> tuple[str, ...]:
    return tuple(step.task for step in steps)


def _retries(graph: RunGraph) -> Iterator[Finding]:
    for step in container_tasks(graph):
        if step.attempt_limit > 1:
            yield Finding(
                Level.WARNING,
                "retry-ineffective",
                f"set_retry({step.attempt_limit - 1}) does nothing when its code fails on a stock"
                " KFP 2.17, whose Workflow defaults retry errors of the cluster only (retryPolicy"
                " OnError); ask your admin, or retry inside the step",
                step.task,
            )


def _accelerators(graph: RunGraph) -> Iterator[Finding]:
    for step in container_tasks(graph):
        where = accelerated_by(step)
        if where:
            yield Finding(
                Level.WARNING,
                "no-accelerator",
                f"its {where} suggests a node with accelerators, but it requests none, so its"
                f" container may see none; this line asks for one: {accelerator_line(GPU)}",
                step.task,
            )


def _resource_names(graph: RunGraph) -> Iterator[Finding]:
    """Resources without a domain, which Kubernetes refuses: `A100`, where `nvidia.com/gpu` is."""
    for step in container_tasks(graph):
        asked = {*step.requests, *(step.workers.requests if step.workers else ())}
        for name in sorted(asked - _NATIVE_RESOURCES):
            if "/" not in name and not name.startswith("hugepages-"):
                yield Finding(
                    Level.ERROR,
                    "resource-domain",
                    f"asks for {name!r:.80}, which Kubernetes refuses: a resource beside cpu and"
                    f" memory needs a domain; use the name nodes offer it under, such as {GPU}",
                    step.task,
                )


def _shared_volumes(graph: RunGraph) -> Iterator[Finding]:
    """Volumes that the run makes, each once whatever the number of iterations."""
    users: dict[str, list[Step]] = {}
    for step in graph.steps:
        for use in step.claims:
            users.setdefault(use.claim, []).append(step)
    seen: set[str] = set()
    for claim in graph.claims:
        maker = "" if claim.is_workspace else task_of(claim.created_by)
        exists_before = not (claim.is_workspace or maker)
        steps = users.get(claim.name, [])
        if exists_before or maker in seen or shared_modes(claim.access_modes) or len(steps) < 2:
            continue
        seen.add(maker)
        what = f"the volume of {maker}" if maker else "the workspace"
        tasks = {step.task: step for step in steps}
        yield Finding(
            Level.NOTE,
            "shared-volume",
            f"{counted(len(steps), 'step')} mount {what:.120}, which is not ReadWriteMany, so those"
            f" that run at the same time share one node{_named(list(tasks.values()))}",
            steps=tuple(tasks),
        )


def _images(graph: RunGraph) -> Iterator[Finding]:
    seen: set[str] = set()
    for step in container_tasks(graph):
        name = step.image.rpartition("/")[2]
        tag = name.partition(":")[2]
        if step.image and "@" not in name and "{{" not in step.image and step.image not in seen:
            seen.add(step.image)
            if tag in ("", "latest"):
                yield Finding(
                    Level.NOTE,
                    "floating-image",
                    f"image {step.image} has no fixed tag: it is pulled again at every start, and"
                    " nodes may hold different ones; name a version or a digest",
                    step.task,
                )


def _pod_less(graph: RunGraph) -> Iterator[Finding]:
    for step in graph.steps:
        if step.kind is StepKind.IMPORTER:
            yield Finding(
                Level.NOTE,
                "importer",
                "is an importer: KFP gives its pod no labels, so it stays with the default"
                " scheduler",
                step.task,
            )
        elif step.kind is not StepKind.CONTAINER and _has_mark(step):
            yield Finding(
                Level.WARNING,
                "mark-without-pod",
                "is carried out by KFP's driver: there is no pod that its marks could reach",
                step.task,
            )


def _has_mark(step: Step) -> bool:
    """Whether a step carries one of our labels; it may count as marked without one."""
    return not _MARK_LABELS.isdisjoint(step.labels)


def _backend(graph: RunGraph) -> Iterator[Finding]:
    if graph.source == "kfp-package" and any(map(_has_mark, graph.steps)):
        yield Finding(
            Level.NOTE,
            "backend-version",
            "pod labels need a KFP backend of version 2.14 or later; older ones give every step the"
            " labels of the first",
        )


_RULES: tuple[Callable[[RunGraph], Iterator[Finding]], ...] = (
    _durations,
    _sizes,
    _requests,
    _retries,
    _accelerators,
    _resource_names,
    _shared_volumes,
    _images,
    _pod_less,
    _backend,
)


def _notices(notices: Iterable[Notice]) -> Iterator[Finding]:
    for notice in notices:
        level = Level.ERROR if notice.code in _REFUSED else Level.WARNING
        yield Finding(level, notice.code, notice.message, notice.step)


def _with_hard_limits(graph: RunGraph, notices: Iterable[Notice]) -> Iterator[Finding]:
    """Notices on a cluster; a hard limit that would not hold is an error."""
    limited = {step.task for step in graph.steps if step.max_latency_ms is not None}
    for finding in _notices(notices):
        lost = finding.code == "unknown-location" and finding.step in limited
        yield replace(finding, level=Level.ERROR) if lost else finding


def _on_cluster(prepared: PreparedRun) -> Iterator[Finding]:
    plan, run = prepared.plan(limits=False), prepared.run
    tasks = {step.name: step.task for step in run.steps}
    for name, reason in plan.unschedulable:
        yield Finding(Level.ERROR, "unschedulable", reason, tasks.get(name, name))
    notices = (notice for notice in plan.notices if notice.code not in _SAID_HERE)
    yield from _with_hard_limits(run, notices)
