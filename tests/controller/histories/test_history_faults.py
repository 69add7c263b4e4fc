"""Histories where something is wrong: plans come as before, and nothing is learned twice."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from kfp_placement_controller.histories import known_pasts
from kfp_placement_controller.histories.runs_to_store import WRITE_PAUSE_SECONDS
from kfp_placement_controller.planning import promising
from kfp_placement_engine.history import Past
from tests.controller.planning.noisy_cluster import (
    ITERATIONS,
    NoisyCluster,
    a_coordinator,
    cluster_with_past,
)
from tests.support.defects import fail, times_said

RUNS = 4
"""Runs after which promises are made."""

STEPS = ITERATIONS + 2


@pytest.fixture
def cluster():
    return cluster_with_past(RUNS)


def is_planned(cluster: NoisyCluster, run: str) -> bool:
    """Whether every step has its node, and ran there."""
    rows = cluster.placement(run).planned_rows().rows
    nodes_known = all(row is not None and row.node is not None for row in rows)
    return nodes_known and set(cluster.states(run).values()) == {"succeeded"}


def uids(cluster: NoisyCluster) -> list[str]:
    return [run.uid for run in cluster.history().past_runs()]


@pytest.mark.parametrize(
    ("place", "name"), [(Past, "observe"), (known_pasts, "with_history"), (promising, "promise_of")]
)
def test_a_defect_in_what_past_runs_tell_leaves_plans_as_they_were(
    cluster, monkeypatch, caplog, place, name
):
    monkeypatch.setattr(place, name, fail)
    cluster.hand_over()
    for number in range(10, 12):
        run = cluster.simulate_run(number)
        assert is_planned(cluster, run)
        assert cluster.placement(run).spec.first_ends is None
    assert times_said(caplog) == 1


def test_where_nothing_can_be_written_runs_are_planned_as_ever_and_teach_when_it_works_again():
    cluster = NoisyCluster()
    cluster.histories.refuses = True
    begun_at = cluster.now
    for number in range(RUNS):
        run = cluster.simulate_run(number)
    assert is_planned(cluster, run)
    tries = (cluster.now - begun_at).total_seconds() / WRITE_PAUSE_SECONDS
    assert 0 < cluster.histories.refused <= tries + 1
    cluster.histories.refuses = False
    cluster.now += timedelta(seconds=WRITE_PAUSE_SECONDS)
    cluster.simulate_run(RUNS)
    assert uids(cluster) == [f"workflow-{number}" for number in range(RUNS + 1)]
    assert cluster.first_ends(cluster.simulate_run(RUNS + 1))


def test_an_object_that_cannot_be_read_is_left_as_it_is(cluster, caplog):
    """What the planner knew of the pipeline counts on."""
    ((key, raw),) = cluster.histories.stored.items()
    foreign = {**raw, "status": {"runs": [{"uid": 7}]}}
    cluster.histories.stored[key] = foreign
    for number in range(10, 13):
        assert cluster.first_ends(cluster.simulate_run(number))
    assert cluster.histories.stored[key] == foreign
    assert times_said(caplog, "left as it is") == 1
    del cluster.histories.stored[key]
    cluster.tell()
    assert is_planned(cluster, cluster.simulate_run(13))
    assert uids(cluster) == [f"workflow-{number}" for number in range(RUNS, RUNS + 4)]


def test_an_object_of_another_pipeline_is_left_alone_and_not_tried_again(cluster, caplog):
    ((key, raw),) = cluster.histories.stored.items()
    theirs = {**raw, "spec": {"pipeline": "other"}}
    cluster.histories.stored[key] = theirs
    cluster.tell()
    for number in range(10, 13):
        assert is_planned(cluster, cluster.simulate_run(number))
    assert cluster.histories.stored[key] == theirs
    assert times_said(caplog, "is of pipeline 'other'") == 1


def test_two_leaders_learn_nothing_twice(cluster):
    """The one before does not know yet that it leads no more."""
    before = cluster.coordinator
    cluster.hand_over()
    run = cluster.begin_run(10)
    handle = cluster.coordinator.handle

    def tell_both(kind: Any, change: Any, now: Any) -> None:
        before.handle(kind, change, now)
        handle(kind, change, now)

    cluster.coordinator.handle = tell_both
    cluster.run()
    for action in before.tick(cluster.now):
        if type(action).__name__ == "WriteHistory":
            cluster.carry_out(action)
    history: Any = cluster.history()
    assert len(set(uids(cluster))) == len(uids(cluster)) == RUNS + 1
    assert history.status.runs_seen == RUNS + 1
    assert run in cluster.workflows


def test_a_run_that_is_tried_again_counts_once(cluster):
    run = cluster.begin_run(10)
    cluster.run(lambda: states_of(cluster, run).get("last") in ("running", "waiting"))
    fail_last(cluster, run)
    assert cluster.workflows[run].phase == "Failed"
    first = cluster.history().past_runs()[-1]
    assert (first.uid, first.seconds) == (f"workflow-{RUNS}", None)
    assert cluster.placement(run).spec.first_ends is not None
    cluster.now += timedelta(hours=3)
    cluster.retry(run)
    cluster.run()
    assert cluster.workflows[run].phase == "Succeeded"
    # What was promised first was of the try that failed.
    assert cluster.placement(run).spec.first_ends is None
    assert len(uids(cluster)) == len(set(uids(cluster))) == RUNS + 1
    again = cluster.history().past_runs()[-1]
    assert (again.uid, again.seconds, again.planned_seconds) == (first.uid, None, None)
    assert len(again.steps) == STEPS
    assert all(each.seconds is not None and each.seconds < 1_000 for each in again.steps)


def states_of(cluster: NoisyCluster, run: str) -> Mapping[str, str]:
    placement = cluster.placements.get(("team", run))
    return {} if placement is None or placement.status is None else cluster.states(run)


def fail_last(cluster: NoisyCluster, run: str) -> None:
    """The pod of the last step fails."""
    for pod in cluster.workflows[run].cluster.pods.values():
        if pod["metadata"]["annotations"]["workflows.argoproj.io/node-name"].endswith(".last"):
            pod["status"]["phase"] = "Failed"
    cluster.is_changed = True
    cluster.run()


def test_a_run_that_is_deleted_halfway_teaches_nothing(cluster):
    run = cluster.begin_run(10)
    cluster.run(lambda: states_of(cluster, run).get("first") == "succeeded")
    del cluster.workflows[run]
    cluster.tell()
    assert is_planned(cluster, cluster.simulate_run(11))
    assert uids(cluster)[:RUNS] == [f"workflow-{number}" for number in range(RUNS)]
    assert len(uids(cluster)) == RUNS + 1


def test_a_run_that_ended_while_no_planner_ran_is_learned_from_at_the_start(cluster):
    run = cluster.begin_run(10)
    cluster.run(lambda: states_of(cluster, run).get("last") == "running")
    promised = cluster.first_ends(run)
    cluster.coordinator = a_coordinator()
    cluster.run(lambda: cluster.workflows[run].phase == "Succeeded")
    assert f"workflow-{RUNS}" not in uids(cluster)
    cluster.hand_over(epoch=3)
    cluster.simulate_run(11)
    past = next(each for each in cluster.history().past_runs() if each.uid == f"workflow-{RUNS}")
    assert len(past.steps) == STEPS
    assert past.planned_seconds == pytest.approx(promised.planned)


def test_what_is_there_at_the_start_is_learned_from_once(cluster):
    writes = cluster.histories.writes
    for epoch in range(2, 5):
        cluster.hand_over(epoch=epoch)
        cluster.now += timedelta(seconds=WRITE_PAUSE_SECONDS)
        cluster.run(lambda: True)
    assert cluster.histories.writes == writes
    assert uids(cluster) == [f"workflow-{each}" for each in range(RUNS)]


def test_a_pipeline_of_which_nothing_is_ever_to_count_is_known_no_more(cluster):
    (key,) = cluster.histories.stored
    stored = cluster.histories.stored[key]
    spec = {**stored["spec"], "forgetBefore": "9999-12-31T23:59:59Z"}
    metadata = {**stored["metadata"], "resourceVersion": "99"}
    cluster.histories.stored[key] = {**stored, "spec": spec, "metadata": metadata}
    for number in (10, 11):
        run = cluster.simulate_run(number)
    assert cluster.placement(run).spec.first_ends is None
