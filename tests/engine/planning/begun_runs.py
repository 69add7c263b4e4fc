"""Hypothesis strategies: runs of which something has already happened."""

from dataclasses import replace

from hypothesis import strategies as st

from kfp_placement_engine import ActiveRun, ProgressState, StepProgress
from tests.engine.planning.random_runs import Case, Limits, cases
from tests.support.builders import ROUND_NUMBERS

WAITING, RUNNING, DONE = ProgressState.WAITING, ProgressState.RUNNING, ProgressState.DONE
OVERRUN = replace(ROUND_NUMBERS, overrun_share=0.125)
"""Assumptions that keep what is left of a pod that overran a sum of small powers of two."""


@st.composite
def driver_progress(draw, nodes: list[str]) -> StepProgress:
    """A driver pod's."""
    return StepProgress(
        draw(st.sampled_from([WAITING, RUNNING, DONE])),
        draw(st.sampled_from(nodes)),
        draw(st.sampled_from([0.0, 0.5, 9.0])),
    )


@st.composite
def begun_cases(draw) -> tuple[Case, ActiveRun]:
    """A case and its run in the middle of things, orderly or not; some steps keep a node."""
    case: Case = draw(cases(limits=Limits.OF_PODS))
    names = [node.name for node in case.cluster.nodes]
    shared = draw(st.sampled_from(names))
    progress: dict[str, StepProgress] = {}
    for step in case.run.steps:
        state = draw(st.sampled_from([DONE, DONE, RUNNING, WAITING, WAITING]))
        # Two pods on two nodes cannot have one volume; a node may also be lost.
        node = shared if step.claims else draw(st.sampled_from([*names, *names, "lost"]))
        driver = draw(st.none() | driver_progress(names)) if step.has_driver else None
        elapsed = draw(st.sampled_from([0.0, 0.5, 1.0, 2.5, 30.0]))
        progress[step.name] = StepProgress(state, node, elapsed, driver)
    groups = {
        group.name: draw(driver_progress(names)) for group in case.run.groups if draw(st.booleans())
    }
    held = {
        step.name: draw(st.sampled_from([*names, "lost"]))
        for step in case.run.steps
        if draw(st.integers(0, 3)) == 0
    }
    return case, ActiveRun("run", case.run, progress=progress, group_progress=groups, held=held)
