"""Search for the run, and for the steps of a run, that a name means."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import (
    ClusterAmbiguousError,
    ClusterError,
    ClusterForbiddenError,
    ClusterMissingError,
)
from kfp_placement.live.kinds import (
    PLACEMENT_METADATA,
    PLACEMENTS,
    WORKFLOW_METADATA,
    objects,
    our_objects,
)
from kfp_placement_engine.contract.keys import RUN_ID_LABEL
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.step_names import StepNames, task_of
from kfp_placement_engine.views.formatting import shown, visible
from kfp_placement_engine.views.runs import NamedRun, RunView, named_run
from kfp_placement_engine.views.steps import StepView
from kfp_placement_kube.kinds import JsonObject

_PLACEMENTS_PAGE = 50
"""Objects of a page of PipelinePlacements, each of which may have 1 MB."""

NAMES_PAGE = 500
"""Objects of a page if only their metadata are requested."""

_OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_INDEX = re.compile(r"\[[0-9]+\]")

_MAX_NAMES = 10
"""Runs that a message names."""


def the_run(api: ClusterApi, namespace: str, wanted: str, wider: str = "-A") -> NamedRun:
    """Return the one run that a name means.

    Args:
        api: cluster to search.
        namespace: namespace to search; "" = all.
        wanted: Workflow's name, KFP's run id or KFP's run name, of a run with a plan if there is
            one; `NAMESPACE/NAME` is one of these in that namespace, which is searched instead.
        wider: option that searches all namespaces, for messages.

    Raises:
        ClusterAmbiguousError: the name may mean several runs; the message names them.
        ClusterMissingError: there is no such run, or the controller is not installed.
        ClusterError: the cluster refuses, or gives no answer.
    """
    own = _own_key(wanted)
    runs = _runs_called(api, namespace, wanted, own)
    name = repr(shown(wanted, 120))
    if not runs:
        where = f"namespace {namespace}" if namespace else "any namespace"
        more = f"; {wider} looks in all namespaces" if namespace else ""
        also = ""
        if own and own.namespace != namespace:
            also = f"nor {shown(own.name, 120)!r} in namespace {own.namespace}, "
        raise ClusterMissingError(
            f"no run {name} in {where}, {also}by Workflow, run id or run name{more};"
            " `kfp-placement list` shows what there is"
        )
    if len(runs) > 1:
        raise ClusterAmbiguousError(
            f"{name} may be several runs; name one as NAMESPACE/NAME:"
            f" {candidates([each.key for each in runs])}"
        )
    return runs[0]


def steps_named(run: RunView, wanted: str) -> tuple[StepView, ...]:
    """Return the step of a name, or all iterations if it is the name of a task in a loop.

    Args:
        run: run whose steps are searched.
        wanted: `for-loop-1[0].work` for one step; for all iterations `for-loop-1[*].work`,
            `for-loop-1.work`, or `work` if no other task has that name.

    Raises:
        ClusterMissingError: there is no such step; the message names what comes close.
    """
    names = StepNames((step.name, task_of(step.name), "") for step in run.steps)
    meant = set(names.resolve(wanted))
    if not meant and _INDEX.search(wanted):
        pattern = re.compile(re.escape(wanted).replace(r"\[\*\]", r"\[[0-9]+\]"))
        meant = {step.name for step in run.steps if pattern.fullmatch(step.name)}
    if meant:
        return tuple(step for step in run.steps if step.name in meant)
    folded = f" ({run.folded_steps} ended steps are only counted)" if run.folded_steps else ""
    raise ClusterMissingError(f"{run.name}: {visible(names.why_unresolved(wanted))}{folded}")


def candidates(runs: Sequence[RunKey]) -> str:
    """Return the namespaces and names of runs as a list for a message."""
    names = ", ".join(f"{shown(space, 63)}/{shown(name, 120)}" for space, name in runs[:_MAX_NAMES])
    return names + (", ..." if len(runs) > _MAX_NAMES else "")


def placements(api: ClusterApi, namespace: str, **chosen: str) -> Iterator[JsonObject]:
    """Yield the PipelinePlacements of a namespace ("" = all).

    Args:
        api: cluster to read.
        namespace: namespace of the objects.
        **chosen: selectors, as for `ClusterApi.pages`.

    Raises:
        ClusterError: the cluster refuses, gives no answer, or lacks the controller.
    """
    return our_objects(api, PLACEMENTS, namespace=namespace, limit=_PLACEMENTS_PAGE, **chosen)


def _runs_called(
    api: ClusterApi, namespace: str, wanted: str, own: RunKey | None
) -> list[NamedRun]:
    """Return the runs that a name may mean; `own` is what `_own_key` returns for it."""
    refusal: ClusterError | None = None
    if own is not None:
        try:
            if runs := _runs_in(api, own.namespace, own.name):
                return runs
        except (ClusterForbiddenError, ClusterMissingError) as error:
            # It may still be KFP's name of a run, which may contain a slash.
            refusal = error
    runs = _runs_in(api, namespace, wanted)
    if not runs and refusal is not None:
        raise refusal
    return runs


def _runs_in(api: ClusterApi, namespace: str, wanted: str) -> list[NamedRun]:
    """Return the runs of one namespace, or of all ("" = all), that a name may mean.

    A plan has the Workflow's name, the run id and the run name. Workflows are searched if no plan
    matches, as a run may have no plan.
    """
    precise = (
        (_OBJECT_NAME, {"field_selector": f"metadata.name={wanted}"}),
        (_LABEL_VALUE, {"label_selector": f"{RUN_ID_LABEL}={wanted}"}),
    )
    for pattern, selector in precise:
        if pattern.fullmatch(wanted):
            matches = placements(api, namespace, **selector)
            if runs := [replace(named_run(raw), raw=raw) for raw in matches]:
                return runs
    plans = our_objects(api, PLACEMENT_METADATA, namespace=namespace, limit=NAMES_PAGE)
    named = _called(plans, wanted) or _called(_workflows(api, namespace, wanted), wanted)
    return [replace(each, raw=api.get(PLACEMENTS, each.name, each.namespace)) for each in named]


def _workflows(api: ClusterApi, namespace: str, wanted: str) -> Iterator[JsonObject]:
    """Yield the metadata of all Workflows; nothing if Argo is not installed.

    Raises:
        ClusterMissingError: we have no right to list Workflows.
    """
    try:
        yield from objects(api, WORKFLOW_METADATA, namespace=namespace, limit=NAMES_PAGE)
    except ClusterForbiddenError as error:
        raise ClusterMissingError(
            f"no plan is that of a Workflow, run id or run name {shown(wanted, 120)!r}, and runs"
            f" without a plan cannot be looked up: {error}"
        ) from error
    except ClusterMissingError:
        return


def _called(raw_objects: Iterator[JsonObject], wanted: str) -> list[NamedRun]:
    """Return the runs among objects whose Workflow's name, run id or run name is `wanted`."""
    runs = map(named_run, raw_objects)
    return [each for each in runs if wanted in (each.name, each.run_id, each.run_name)]


def _own_key(wanted: str) -> RunKey | None:
    """Return the parts of `NAMESPACE/NAME`, or None if the text cannot be that."""
    namespace, _, name = wanted.partition("/")
    return RunKey(namespace, name) if name and _NAMESPACE.fullmatch(namespace) else None
