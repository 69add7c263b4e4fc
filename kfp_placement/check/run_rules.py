"""Rules of `check` about what a run says beside our marks: run times, requests, images, volumes."""

from collections.abc import Iterable, Iterator

from kfp_placement.check.findings import Finding, Rule, Severity
from kfp_placement.check.tasks import container_tasks, listed_tasks, task_names
from kfp_placement.prepared_run import PreparedRun
from kfp_placement.remedies import GPU, accelerated_by
from kfp_placement_engine.contract.keys import (
    LOCATION_LABEL,
    SCHEDULER_LABEL,
    TYPE_LABEL,
    UNPLANNED_LABEL,
)
from kfp_placement_engine.model.node_rules.constraints import shared_modes
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import StartLimit, Step, StepKind
from kfp_placement_engine.model.step_names import listed, task_of
from kfp_placement_engine.planning.author_languages import language_of
from kfp_placement_engine.planning.hindrances.end_limits import late_by_hints
from kfp_placement_engine.readers.kubernetes.start_limits import LEAST_SECONDS
from kfp_placement_engine.units.durations import format_duration
from kfp_placement_engine.views.formatting import counted

_MARK_LABELS = frozenset({TYPE_LABEL, LOCATION_LABEL, SCHEDULER_LABEL, UNPLANNED_LABEL})

_NATIVE_RESOURCES = frozenset({"cpu", "ephemeral-storage", "memory"})
"""Resources whose name has no domain."""

_EXAMPLE_SECONDS = 1200
"""Run time in the advice on steps without one."""

_MAX_NAMES = 5
"""Outputs that one message names."""


def missing_durations(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield one finding on all steps whose run time nobody states."""
    tasks = list(container_tasks(prepared.run))
    assumed = [step for step in tasks if step.is_guessed]
    if not assumed:
        return
    everything = len(assumed) == len(tasks)
    some = f"{len(assumed)} of {len(tasks)} steps {'has' if len(assumed) == 1 else 'have'}"
    what = f"{'no step has a' if everything else f'{some} no'} duration"
    yield Finding(
        Severity.WARNING if everything else Severity.NOTE,
        "no-durations" if everything else "some-durations",
        f"{what}{'' if everything else listed_tasks(assumed)}, so a run time is assumed; write"
        f" {language_of(prepared.run).duration(_EXAMPLE_SECONDS)}, since a plan is only as good as"
        " the run times are",
        steps=task_names(assumed),
    )


def missing_sizes(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield one finding on all outputs that are read and whose size nobody states."""
    graph = prepared.run
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
            Severity.NOTE,
            "no-sizes",
            f"{len(unsized):,} {'output has' if one else 'outputs have'} no size but"
            f" {'is' if one else 'are'} read ({listed(list(unsized), _MAX_NAMES)}), and a size is"
            " assumed, 0 unless the cluster says otherwise; write"
            f" {language_of(graph).output_size(key)}",
            steps=tuple(dict.fromkeys(unsized.values())),
        )


def missing_requests(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield one finding on all steps that request no resources.

    Plain steps without an image make objects, or are in templates that are not known: they have no
    container that could request something.
    """
    is_plain = prepared.run.source == "argo-workflow"
    tasks = container_tasks(prepared.run)
    without = [step for step in tasks if not step.requests and (step.image or not is_plain)]
    if without:
        yield Finding(
            Severity.NOTE,
            "no-requests",
            f"{counted(len(without), 'step')}"
            f" {'requests' if len(without) == 1 else 'request'} nothing{listed_tasks(without)}:"
            " hardly any room is reserved, so that many may share a node; write"
            f" {language_of(prepared.run).requests}",
            steps=task_names(without),
        )


def outlined_runs(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield a finding on a Workflow without images and requests."""
    if prepared.run.is_outline:
        yield Finding(
            Severity.WARNING,
            "outline",
            "this Workflow of KFP 3 has no images and requests, so those of past runs or"
            " assumptions are checked; give the package of the run, too: --package FILE, package="
            " in Python",
        )


def ineffective_retries(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield steps whose retries a stock KFP ignores when their code fails.

    A plain Workflow has a policy, by Argo's rules (`docs/retries.md`); KFP states none, so that
    the defaults of its installation decide.
    """
    for step in container_tasks(prepared.run):
        if step.attempt_limit > 1 and not step.retry.policy:
            yield Finding(
                Severity.WARNING,
                "retry-ineffective",
                f"set_retry({step.attempt_limit - 1}) does nothing when its code fails on a stock"
                " KFP 2.17 or 3, whose Workflow defaults retry errors of the cluster only"
                " (retryPolicy OnError); ask your admin, or retry inside the step",
                step.task,
            )


def missing_accelerators(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield steps that look as if they used accelerators, and request none."""
    language = language_of(prepared.run)
    for step in container_tasks(prepared.run):
        where = accelerated_by(step)
        if where:
            yield Finding(
                Severity.WARNING,
                "no-accelerator",
                f"its {where} suggests a node with accelerators, but it requests none, so its"
                f" container may see none; this line asks for one: {language.accelerator(GPU)}",
                step.task,
            )


def resources_without_domain(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield resources without a domain, which Kubernetes refuses: `A100`, not `nvidia.com/gpu`."""
    for step in container_tasks(prepared.run):
        requested = {*step.requests, *(name for each in step.workers for name in each.requests)}
        for name in sorted(requested - _NATIVE_RESOURCES):
            if "/" not in name and not name.startswith("hugepages-"):
                usual = "google.com/tpu" if "tpu" in name.lower() else GPU
                yield Finding(
                    Severity.ERROR,
                    "resource-domain",
                    f"asks for {name!r:.80}, which Kubernetes refuses: a resource beside cpu and"
                    f" memory needs a domain; use the name nodes offer it under, such as {usual}",
                    step.task,
                )


def shared_volumes(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield volumes that the run makes and that keep its steps on one node.

    Each is named once, whatever the number of iterations.
    """
    graph = prepared.run
    users: dict[str, list[Step]] = {}
    for step in graph.steps:
        for name in step.claims:
            users.setdefault(name, []).append(step)
    seen: set[str] = set()
    for claim in graph.claims:
        what = f"the volume of {task_of(claim.created_by)}" if claim.created_by else ""
        if claim.is_workspace:
            # Only runs of KFP have groups; those of Argo have volumeClaimTemplates.
            what = "the workspace" if graph.groups else f"the volume {claim.name}"
        steps = users.get(claim.name, [])
        if not what or what in seen or shared_modes(claim.access_modes) or len(steps) < 2:
            continue
        seen.add(what)
        tasks = {step.task: step for step in steps}
        yield Finding(
            Severity.NOTE,
            "shared-volume",
            f"{counted(len(steps), 'step')} mount {what:.120}, which is not ReadWriteMany, so those"
            f" that run at the same time share one node{listed_tasks(list(tasks.values()))}",
            steps=tuple(tasks),
        )


def limited_starts(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield one finding on all steps whose pods must run within one and the same limit."""
    limited: dict[StartLimit, list[Step]] = {}
    for step in container_tasks(prepared.run):
        if step.start_limit is not None and step.start_limit.seconds >= LEAST_SECONDS:
            limited.setdefault(step.start_limit, []).append(step)
    for limit, steps in limited.items():
        yield Finding(
            Severity.NOTE,
            "start-limit",
            f"Argo fails {counted(len(steps), 'step')}{listed_tasks(steps)} if the pod does not run"
            f" within {format_duration(limit.seconds)} ({limit.setting}) of the time at which the"
            " step could begin; waiting for a node counts, too. In a cluster with our gates, a pod"
            " waits for its planned node for half of that time at most; where steps wait long for"
            " nodes, allow more time",
            steps=task_names(steps),
        )


def late_ends(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield steps that take longer than they may; on a cluster the plan's notices say it."""
    if not prepared.cluster.nodes:
        yield from of_notices(late_by_hints(prepared.run))


def floating_images(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield images without a fixed tag."""
    seen: set[str] = set()
    for step in container_tasks(prepared.run):
        name = step.image.rpartition("/")[2]
        tag = name.partition(":")[2]
        if step.image and "@" not in name and "{{" not in step.image and step.image not in seen:
            seen.add(step.image)
            if tag in ("", "latest"):
                yield Finding(
                    Severity.NOTE,
                    "floating-image",
                    f"image {step.image} has no fixed tag: unless imagePullPolicy says otherwise,"
                    " the registry is asked for it at every start, and steps of one run may get"
                    " different ones; name a version or a digest",
                    step.task,
                )


def steps_without_marked_pod(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield importers and marked steps that have no pod which marks could reach."""
    for step in prepared.run.steps:
        if step.kind is StepKind.IMPORTER:
            yield Finding(
                Severity.NOTE,
                "importer",
                "is an importer: KFP gives its pod no labels, so it stays with the default"
                " scheduler",
                step.task,
            )
        elif step.kind is not StepKind.CONTAINER and _has_mark(step):
            yield Finding(
                Severity.WARNING,
                "mark-without-pod",
                "is carried out by KFP's driver: there is no pod that its marks could reach",
                step.task,
            )


def _has_mark(step: Step) -> bool:
    """Return whether a step has one of our labels; a step may count as marked without one."""
    return not _MARK_LABELS.isdisjoint(step.labels)


def backend_version(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield a note on the backend that the labels of a marked KFP package need."""
    graph = prepared.run
    if graph.source == "kfp-package" and any(map(_has_mark, graph.steps)):
        yield Finding(
            Severity.NOTE,
            "backend-version",
            "pod labels need a KFP backend of version 2.14 or later; older ones give every step the"
            " labels of the first",
        )


def reader_notices(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield what the readers of the run noticed."""
    yield from of_notices(prepared.run.notices)


def of_notices(notices: Iterable[Notice]) -> Iterator[Finding]:
    """Yield notices as findings; what is refused, or waits forever, is an error."""
    for notice in notices:
        is_error = notice.is_refusal or notice.code == "made-pods-without-room"
        level = Severity.ERROR if is_error else Severity.WARNING
        yield Finding(level, notice.code, notice.message, notice.step)


RUN_RULES: tuple[Rule, ...] = (
    missing_durations,
    missing_sizes,
    missing_requests,
    outlined_runs,
    ineffective_retries,
    missing_accelerators,
    resources_without_domain,
    shared_volumes,
    limited_starts,
    late_ends,
    floating_images,
    steps_without_marked_pod,
    backend_version,
    reader_notices,
)
