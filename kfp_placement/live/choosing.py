"""Which run and which steps a name means."""

import re
from collections.abc import Sequence

from kfp_placement.live.exceptions import ClusterAmbiguousError, ClusterMissingError
from kfp_placement.live.fetching import NamedRun, find_runs, full_run, in_namespace
from kfp_placement.live.kinds import Api
from kfp_placement.live.runs import RunView, StepView
from kfp_placement.live.workflows import why_no_plan, with_failure
from kfp_placement.report.visible import shown, visible
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.step_names import StepNames, task_of

_INDEX = re.compile(r"\[[0-9]+\]")
_SHOWN = 10


def the_run(api: Api, namespace: str, wanted: str, wider: str) -> NamedRun:
    """The one run that is meant.

    Args:
        api: the cluster.
        namespace: where to look; "" = everywhere.
        wanted: the run's name.
        wider: how to look in all namespaces, for messages: `-A`.

    Raises:
        ClusterAmbiguousError: several may be meant; they are named.
        ClusterMissingError: none.
        ClusterError: refused, or no answer.
    """
    runs = find_runs(api, namespace, wanted)
    name = repr(shown(wanted, 120))
    if not runs:
        where = f"namespace {namespace}" if namespace else "any namespace"
        more = f"; {wider} looks in all namespaces" if namespace else ""
        own, within = in_namespace(wanted)
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


def planned_run(api: Api, named_run: NamedRun) -> tuple[RunView, tuple[str, ...]]:
    """A run with everything that is known about it; and what could not be read.

    Raises:
        ClusterMissingError: it has no plan; the message says why.
        ClusterError: no answer.
    """
    if named_run.raw is None:
        raise ClusterMissingError(
            f"Workflow {named_run.namespace}/{named_run.name} is there but has no plan:"
            f" {why_no_plan(api, named_run.namespace, named_run.name)}"
        )
    view, missing = full_run(api, named_run)
    return with_failure(api, view), missing


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
