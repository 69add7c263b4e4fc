"""Which run and which steps a name means."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

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
    Api,
    JsonObject,
    objects,
    our_objects,
)
from kfp_placement_engine.contract.keys import RUN_ID_LABEL
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.step_names import StepNames, task_of
from kfp_placement_engine.views.formatting import shown, visible
from kfp_placement_engine.views.runs import NamedRun, RunView, named_run
from kfp_placement_engine.views.steps import StepView

_PLACEMENTS_PAGE = 50
"""Each has up to 1 MB."""

NAMES_PAGE = 500
"""Where objects are asked for by their metadata alone."""

_OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_INDEX = re.compile(r"\[[0-9]+\]")
_SHOWN = 10


def the_run(api: Api, namespace: str, wanted: str, wider: str = "-A") -> NamedRun:
    """The one run that is meant.

    Args:
        api: the cluster.
        namespace: where to look; "" = everywhere.
        wanted: Workflow's name, else KFP's run id, else KFP's run name; `NAMESPACE/NAME` is one of
            these in that namespace, wherever one should look.
        wider: how to look in all namespaces, for messages.

    Raises:
        ClusterAmbiguousError: several may be meant; they are named.
        ClusterMissingError: none, or the controller is not installed.
        ClusterError: refused, or no answer.
    """
    runs = _runs_called(api, namespace, wanted)
    name = repr(shown(wanted, 120))
    if not runs:
        where = f"namespace {namespace}" if namespace else "any namespace"
        more = f"; {wider} looks in all namespaces" if namespace else ""
        own, within = _in_namespace(wanted)
        also = (
            f"nor {shown(within, 120)!r} in namespace {own}, " if own and own != namespace else ""
        )
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
    """The step of that name, or all iterations of the task of that name.

    Args:
        run: the run.
        wanted: `for-loop-1[0].work`; `for-loop-1[*].work`, `for-loop-1.work`, or `work` where
            no other step has that name, for all.

    Raises:
        ClusterMissingError: there is none; the message names what comes close.
    """
    names = StepNames((step.name, task_of(step.name), "") for step in run.steps)
    meant = set(names.meant(wanted))
    if not meant and _INDEX.search(wanted):
        pattern = re.compile(re.escape(wanted).replace(r"\[\*\]", r"\[[0-9]+\]"))
        meant = {step.name for step in run.steps if pattern.fullmatch(step.name)}
    if meant:
        return tuple(step for step in run.steps if step.name in meant)
    folded = f" ({run.folded_steps} ended steps are only counted)" if run.folded_steps else ""
    raise ClusterMissingError(f"{run.name}: {visible(names.problem(wanted))}{folded}")


def candidates(runs: Sequence[RunKey]) -> str:
    """Namespaces and names of runs, for whoever must choose one."""
    names = ", ".join(f"{shown(space, 63)}/{shown(name, 120)}" for space, name in runs[:_SHOWN])
    return names + (", ..." if len(runs) > _SHOWN else "")


def placements(api: Api, namespace: str, **chosen: str) -> Iterator[JsonObject]:
    """The plans of a namespace ("" = all); `chosen` by a selector, as for `Api.pages`.

    Raises:
        ClusterError: refused, no answer, or the controller is not installed.
    """
    return our_objects(api, PLACEMENTS, namespace=namespace, limit=_PLACEMENTS_PAGE, **chosen)


def _runs_called(api: Api, namespace: str, wanted: str) -> list[NamedRun]:
    """The runs that a name may mean."""
    own, name = _in_namespace(wanted)
    refusal: ClusterError | None = None
    if own:
        try:
            if runs := _runs_in(api, own, name):
                return runs
        except (ClusterForbiddenError, ClusterMissingError) as error:
            # It may be KFP's name of a run: these may hold anything.
            refusal = error
    runs = _runs_in(api, namespace, wanted)
    if not runs and refusal is not None:
        raise refusal
    return runs


def _runs_in(api: Api, namespace: str, wanted: str) -> list[NamedRun]:
    """Likewise, in one namespace or all.

    Plans have all three names; Workflows are asked where none does, as a run may have no plan.
    """
    precise = (
        (_OBJECT_NAME, {"field_selector": f"metadata.name={wanted}"}),
        (_LABEL_VALUE, {"label_selector": f"{RUN_ID_LABEL}={wanted}"}),
    )
    for pattern, selector in precise:
        if pattern.fullmatch(wanted):
            found = placements(api, namespace, **selector)
            if runs := [replace(named_run(raw), raw=raw) for raw in found]:
                return runs
    plans = our_objects(api, PLACEMENT_METADATA, namespace=namespace, limit=NAMES_PAGE)
    named = _called(plans, wanted) or _called(_workflows(api, namespace, wanted), wanted)
    return [replace(each, raw=api.get(PLACEMENTS, each.name, each.namespace)) for each in named]


def _workflows(api: Api, namespace: str, wanted: str) -> Iterator[JsonObject]:
    """Metadata of all Workflows; none where there is no Argo, so no runs.

    Raises:
        ClusterMissingError: we may not look.
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


def _called(found: Iterator[JsonObject], wanted: str) -> list[NamedRun]:
    """Those of that name, run id or run name."""
    runs = map(named_run, found)
    return [each for each in runs if wanted in (each.name, each.run_id, each.run_name)]


def _in_namespace(wanted: str) -> tuple[str, str]:
    """Namespace and name of `NAMESPACE/NAME`; "" and the whole where it cannot be that."""
    namespace, slash, name = wanted.partition("/")
    return (namespace, name) if slash and name and _NAMESPACE.fullmatch(namespace) else ("", wanted)
