import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.plans.comparison import ScheduledStep
from kfp_placement_engine.render.text_time_line import time_lines
from kfp_placement_engine.render.widths import width
from tests.support.renderings import schedule_of

MINUTE = 60.0
TRAININGS = (
    ScheduledStep("fetch", "worker-1", 0, 2 * MINUTE),
    ScheduledStep("xgboost", "worker-2", 2 * MINUTE, 26 * MINUTE),
    ScheduledStep("forest", "worker-1", 2 * MINUTE, 11 * MINUTE),
    ScheduledStep("notify", "worker-1", 4 * MINUTE, 4 * MINUTE + 1),
)


@pytest.mark.golden
def test_two_schedules_on_one_scale(golden):
    faster = (TRAININGS[0], ScheduledStep("xgboost", "worker-2", 2 * MINUTE, 14 * MINUTE))
    golden(time_lines((schedule_of("slow:", TRAININGS), schedule_of("fast:", faster)), 72))


@pytest.mark.golden
def test_a_schedule_without_steps(golden):
    golden(time_lines([schedule_of("nothing:", ())], 40))


@pytest.mark.golden
def test_what_strangers_call_their_steps_is_shown_as_text(golden):
    steps = [
        ScheduledStep("\x1b[31mred", "node\n1", 0, 10),
        ScheduledStep("列車を訓練する", "node\n1", 10, 14),
        ScheduledStep("x" * 60_000, "n" * 300, 0, 5),
    ]
    golden(time_lines([schedule_of("hostile:", steps)], 60))


def test_steps_that_follow_each_other_share_a_line():
    steps = [ScheduledStep(f"s{i}", "worker", i * 0.5, i * 0.5 + 0.5) for i in range(3)]
    steps.append(ScheduledStep("train", "worker", 1.5, 100))
    drawn = time_lines([schedule_of("", steps)], 60)[1:-2]
    assert len(drawn) == 1
    assert drawn[0].count("|") == 4


def test_steps_at_the_same_time_have_a_line_each():
    steps = [ScheduledStep("a", "worker", 0, 50), ScheduledStep("b", "worker", 49.9, 100)]
    assert len(time_lines([schedule_of("", steps)], 60)[1:-2]) == 2


TIMES = st.floats(0, 1e6)
SCHEDULES = st.lists(
    st.builds(
        lambda name, node, start, length: ScheduledStep(name, node, start, start + length),
        st.text(min_size=1, max_size=30),
        st.sampled_from(("worker-1", "worker-2", "gpu")),
        TIMES,
        TIMES,
    ),
    max_size=30,
)


@given(SCHEDULES, st.integers(60, 160))
def test_every_step_is_drawn_and_no_line_is_too_wide(steps, columns):
    bare = [
        ScheduledStep("s", step.node, step.start_seconds, step.finish_seconds) for step in steps
    ]
    lines = time_lines([schedule_of("", bare)], columns)
    assert sum(line.count("|") for line in lines) == len(steps)
    named = time_lines([schedule_of("", steps)], columns)
    # A step of no length at the very end takes a column more; the axis names its last time there.
    assert all(width(line) <= columns + 1 for line in named)
