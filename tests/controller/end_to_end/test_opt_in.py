"""With `features/opt-in` only namespaces that ask for it take part."""

from contextlib import ExitStack
from typing import Any

import pytest

from kfp_placement_engine.contract.keys import DEFAULT_SCHEDULER, ENABLED_LABEL
from tests.controller.end_to_end.history import History
from tests.controller.end_to_end.queues import request, set_queue, status, wait_for_phase
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.taxi_runs import executors, schedulers_at_end
from tests.controller.end_to_end.teams import Team, team_of
from tests.controller.hold_cases import is_held
from tests.controlplane.waiting import wait_until
from tests.support.manifests import a_queue

SHORT = chain("short", 0.1)
LONG = chain("long", 4.0, 0.1)


def readiness(team: Team) -> tuple[bool, str]:
    """What RunQueue `default` says of new runs, and why."""
    state = status(team)
    reasons = [each["reason"] for each in state.get("conditions", ()) if each["type"] == "Ready"]
    return state.get("ready") is True, "".join(reasons)


def set_closed_queue(team: Team, **spec: Any) -> None:
    """Make a queue where no run takes part, and wait until it says so."""
    queue = a_queue(team.name, **spec)
    team.api.patch(queue, queue, how="apply")
    wait_until(
        lambda: readiness(team) == (False, "NamespaceExcluded"),
        "a queue to say that its team takes no part",
    )


@pytest.fixture
def history(choosy_installation):
    with History(choosy_installation.api) as watched:
        yield watched


def test_a_namespace_that_does_not_ask_for_it_is_left_alone(choosy_installation, history):
    with ExitStack() as stack:
        teams = [
            stack.enter_context(team_of(choosy_installation, labels))
            for labels in (None, {ENABLED_LABEL: "false"}, {ENABLED_LABEL: "yes"})
        ]
        runs = [team.submit(chain("bare", 0.2)) for team in teams]
        for run, team in zip(runs, teams, strict=True):
            schedulers = schedulers_at_end(team, run)
            assert schedulers == {"s1": "default-scheduler"}
            # Nobody has planned what nobody would place.
            assert history.written(run, team.name) == ()


def test_a_namespace_that_asks_for_it_is_placed_by_plan(choosy_installation, history):
    with team_of(choosy_installation, {ENABLED_LABEL: "true"}) as team:
        run = team.submit(chain("asking", 0.2, 0.2))
        schedulers = schedulers_at_end(team, run)
        assert schedulers == {"s1": DEFAULT_SCHEDULER, "s2": DEFAULT_SCHEDULER}
        for pod in executors(team).values():
            assert pod["spec"]["nodeName"] in history.planned_for(pod)


def test_a_namespace_that_asks_later_is_placed_from_its_next_run_on(choosy_installation):
    installation = choosy_installation
    with team_of(installation) as team:
        first = team.submit(chain("early", 0.2))
        assert schedulers_at_end(team, first) == {"s1": "default-scheduler"}
        team.label(ENABLED_LABEL, "true")

        def is_placed() -> bool:
            # Admission learns of the label somewhat later.
            run = team.submit(chain("late", 0.2))
            schedulers_at_end(team, run)
            return team.placement(run) is not None and DEFAULT_SCHEDULER in {
                pod["spec"]["schedulerName"] for pod in executors(team).values()
            }

        wait_until(is_placed, "a run to be placed")
        assert team.placement(first) is None


def test_runs_wait_and_count_only_where_namespaces_ask_for_it(choosy_installation):
    installation = choosy_installation
    with team_of(installation) as bare, team_of(installation, {ENABLED_LABEL: "true"}) as asking:
        set_closed_queue(bare, quota={"runs": 0}, onControllerDown="hold")
        set_queue(asking, quota={"runs": 0})
        free = bare.submit(LONG)
        assert not is_held(bare.workflow(free))
        waiting = asking.submit(SHORT)
        assert is_held(asking.workflow(waiting))
        wait_until(lambda: request(asking, waiting), "the planner to know the run")
        wait_until(lambda: status(asking).get("waiting") == 1, "its queue to count the run")
        # By now both processes know the run that was submitted before, too.
        assert request(bare, free) == {}
        counts = status(bare)
        assert (counts["waiting"], counts["admitted"]) == (0, 0)
        set_queue(asking, quota={})
        asking.wait_for_success(waiting)
        bare.wait_for_success(free)


def test_held_runs_begin_when_their_namespace_asks_no_longer(choosy_installation):
    installation = choosy_installation
    with team_of(installation, {ENABLED_LABEL: "true"}) as team:
        set_queue(team, quota={"runs": 0}, onControllerDown="hold")
        run = team.submit(SHORT)
        assert is_held(team.workflow(run))
        wait_for_phase(team, run, "Waiting")
        team.label(ENABLED_LABEL, None)
        team.wait_for_success(run)
        wait_for_phase(team, run, "Finished")
        assert readiness(team) == (False, "NamespaceExcluded")
