"""Which run and which steps a name on the command line means; pure."""

import difflib
import re
from collections.abc import Sequence

from kfp_placement.live.exceptions import ClusterMissingError
from kfp_placement.live.runs import RunView, StepView
from kfp_placement.report.visible import shown

_INDEX = re.compile(r"\[[0-9]+\]")
_SHOWN = 10


def steps_named(run: RunView, wanted: str) -> tuple[StepView, ...]:
    """The step of that name, or all iterations of the task of that name.

    Args:
        run: the run.
        wanted: `for-loop-1[0].work`; `for-loop-1[*].work` or `for-loop-1.work` for all.

    Raises:
        ClusterMissingError: there is none; the message names what comes close.
    """
    exact = tuple(step for step in run.steps if step.name == wanted)
    if exact:
        return exact
    if _INDEX.search(wanted):
        pattern = re.compile(re.escape(wanted).replace(r"\[\*\]", r"\[[0-9]+\]"))
        found = tuple(step for step in run.steps if pattern.fullmatch(step.name))
    else:
        task = wanted.replace("[*]", "")
        found = tuple(step for step in run.steps if _INDEX.sub("", step.name) == task)
    if found:
        return found
    raise ClusterMissingError(_unknown(run, wanted))


def _unknown(run: RunView, wanted: str) -> str:
    names = [step.name for step in run.steps]
    close = [name for name in names if name.rpartition(".")[2] == wanted][:3]
    close = close or difflib.get_close_matches(wanted, names[:2000], n=1)
    if close:
        advice = f"did you mean {' or '.join(repr(shown(name, 120)) for name in close)}?"
    else:
        more = ", ..." if len(names) > _SHOWN else ""
        advice = f"steps: {', '.join(shown(name, 80) for name in names[:_SHOWN])}{more}"
    if run.folded_steps:
        advice += f" ({run.folded_steps} ended steps are only counted)"
    return f"{run.name}: there is no step {shown(wanted, 120)!r}; {advice}"


def candidates(runs: Sequence[tuple[str, str]]) -> str:
    """Namespaces and names of runs, for whoever must choose one."""
    told = ", ".join(f"{shown(space, 63)}/{shown(name, 120)}" for space, name in runs[:_SHOWN])
    return told + (", ..." if len(runs) > _SHOWN else "")
