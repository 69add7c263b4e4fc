"""Which run and which steps a name on the command line means; pure."""

import re
from collections.abc import Sequence

from kfp_placement.live.exceptions import ClusterMissingError
from kfp_placement.live.runs import RunView, StepView
from kfp_placement.report.visible import shown, visible
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.step_names import StepNames, task_of

_INDEX = re.compile(r"\[[0-9]+\]")
_SHOWN = 10


def steps_named(run: RunView, wanted: str) -> tuple[StepView, ...]:
    """The step of that name, or all iterations of the task of that name.

    Args:
        run: the run.
        wanted: `for-loop-1[0].work`; `for-loop-1[*].work`, `for-loop-1.work`, or `work` where
            no other step is called so, for all.

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
