"""The seed experiment's draws: exact shares, chains, durations, the same for the same seed."""

from collections import Counter

import pytest

from benchmarks.seed_experiment import (
    DRAWS,
    DURATIONS,
    LEVELS,
    MIXES,
    SUBTASKS,
    TASKS,
    Draw,
    draw_problem,
    draw_run,
    experiment_cluster,
)


def cores_of(run):
    return [step.requests["cpu"] // 1000 for step in run.steps]


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("levels", DRAWS)
def test_shares_are_exact(mix, levels):
    counts = Counter(cores_of(draw_run(Draw(mix, "equal", seed=3, levels=levels))))
    expected = dict(zip(LEVELS.values(), MIXES[mix], strict=True))
    assert counts == {size: share * SUBTASKS for size, share in expected.items()}


def test_a_task_has_one_level_unless_every_subtask_draws_its_own():
    def tasks_of_one_level(levels):
        cores = cores_of(draw_run(Draw("medium", "equal", seed=0, levels=levels)))
        tasks = [cores[SUBTASKS * task : SUBTASKS * (task + 1)] for task in range(TASKS)]
        return sum(len(set(task)) == 1 for task in tasks)

    assert tasks_of_one_level("task") == TASKS
    assert tasks_of_one_level("subtask") < TASKS / 10


def test_memory_goes_with_the_cores_and_subtasks_are_a_chain():
    run = draw_run(Draw("high", "equal", seed=0))
    assert len(run.steps) == TASKS * SUBTASKS
    for step in run.steps:
        assert step.requests["memory"] == step.requests["cpu"] // 1000 * 2**30
        task, subtask = step.name.split(".")
        before = (f"{task}.{int(subtask) - 1}",) if subtask != "0" else ()
        assert step.depends_on == before
        assert not step.has_driver


@pytest.mark.parametrize("durations", DURATIONS)
def test_the_same_seed_is_the_same_draw(durations):
    draw = Draw("low", durations, seed=7)
    assert draw_run(draw) == draw_run(draw)
    assert draw_run(draw) != draw_run(Draw("low", durations, seed=8))


def test_durations():
    """Equal, proportional to vCPU, and random ones; on the same levels for the same seed."""
    runs = {kind: draw_run(Draw("low", kind, seed=1)) for kind in DURATIONS}
    assert len({tuple(cores_of(run)) for run in runs.values()}) == 1
    assert {step.duration_seconds for step in runs["equal"].steps} == {100.0}
    for step in runs["proportional"].steps:
        assert step.duration_seconds == pytest.approx(100 * step.requests["cpu"] / 6000)
    random = [step.duration_seconds or 0.0 for step in runs["lognormal"].steps]
    assert len(set(random)) == len(random)
    assert 80 < sorted(random)[len(random) // 2] < 125


def test_three_nodes_and_no_pods_but_the_steps():
    cluster = experiment_cluster()
    assert [node.allocatable["cpu"] for node in cluster.nodes] == [8000] * 3
    problem = draw_problem(Draw("high", "equal", seed=0))
    assert problem.activities == TASKS * SUBTASKS
    assert not problem.is_driver.any()
    assert problem.dispatch == "ordered"
