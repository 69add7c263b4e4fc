"""With `features/opt-in` only namespaces that ask for it take part."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kfp_placement_engine.contract.keys import DEFAULT_SCHEDULER, ENABLED_LABEL
from tests.controller.end_to_end.history import History
from tests.controller.end_to_end.queues import (
    request,
    said,
    set_queue,
    status,
)
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.taxi_runs import executors, schedulers_at_end
from tests.controller.hold_cases import is_held
from tests.controlplane.waiting import wait_until
from tests.support.installation import Installation
from tests.support.manifests import a_queue

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


SHORT = chain("short", 0.1)
LONG = chain("long", 4.0, 0.1)


def label(installation: Installation, namespace: str, value: str | None) -> None:
    """What a namespace says of taking part; None = nothing."""
    item = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    installation.api.patch(item, {"metadata": {"labels": {ENABLED_LABEL: value}}})


def readiness(installation: Installation, namespace: str) -> tuple[bool, str]:
    """What RunQueue `default` says of new runs, and why."""
    found = status(installation, namespace)
    reasons = [each["reason"] for each in found.get("conditions", ()) if each["type"] == "Ready"]
    return found.get("ready") is True, "".join(reasons)


def set_closed_queue(installation: Installation, namespace: str, **spec: Any) -> None:
    """Make a queue where no run takes part, and wait until it says so."""
    queue = a_queue(namespace, **spec)
    installation.api.patch(queue, queue, how="apply")
    wait_until(
        lambda: readiness(installation, namespace) == (False, "NamespaceExcluded"),
        "a queue to say that its namespace takes no part",
    )


@pytest.fixture
def history(choosy_installation: Installation) -> Iterator[History]:
    with History(choosy_installation.api) as watched:
        yield watched


def test_a_namespace_that_does_not_ask_for_it_is_left_alone(choosy_installation, history):
    with ExitStack() as stack:
        teams = [
            stack.enter_context(choosy_installation.namespace(labels))
            for labels in (None, {ENABLED_LABEL: "false"}, {ENABLED_LABEL: "yes"})
        ]
        runs = [choosy_installation.submit(chain("bare", 0.2), team) for team in teams]
        for run, team in zip(runs, teams, strict=True):
            schedulers = schedulers_at_end(choosy_installation, run, team)
            assert schedulers == {"s1": "default-scheduler"}
            # Nobody has planned what nobody would place.
            assert history.written(run, team) == ()


def test_a_namespace_that_asks_for_it_is_placed_by_plan(choosy_installation, history):
    with choosy_installation.namespace({ENABLED_LABEL: "true"}) as team:
        run = choosy_installation.submit(chain("asking", 0.2, 0.2), team)
        schedulers = schedulers_at_end(choosy_installation, run, team)
        assert schedulers == {"s1": DEFAULT_SCHEDULER, "s2": DEFAULT_SCHEDULER}
        for pod in executors(choosy_installation, team).values():
            assert pod["spec"]["nodeName"] in history.planned_for(pod)


def test_a_namespace_that_asks_later_is_placed_from_its_next_run_on(choosy_installation):
    installation = choosy_installation
    with installation.namespace() as team:
        first = installation.submit(chain("early", 0.2), team)
        assert schedulers_at_end(installation, first, team) == {"s1": "default-scheduler"}
        label(installation, team, "true")

        def is_placed() -> bool:
            # Admission learns of the label somewhat later.
            run = installation.submit(chain("late", 0.2), team)
            schedulers_at_end(installation, run, team)
            return installation.placement(run, team) is not None and DEFAULT_SCHEDULER in {
                pod["spec"]["schedulerName"] for pod in executors(installation, team).values()
            }

        wait_until(is_placed, "a run to be placed", 60)
        assert installation.placement(first, team) is None


def test_runs_wait_and_count_only_where_namespaces_ask_for_it(choosy_installation):
    installation = choosy_installation
    with (
        installation.namespace() as bare,
        installation.namespace({ENABLED_LABEL: "true"}) as asking,
    ):
        set_closed_queue(installation, bare, quota={"runs": 0}, onControllerDown="hold")
        set_queue(installation, asking, quota={"runs": 0})
        free = installation.submit(LONG, bare)
        assert not is_held(installation.workflow(free, bare))
        waiting = installation.submit(SHORT, asking)
        assert is_held(installation.workflow(waiting, asking))
        wait_until(lambda: request(installation, asking, waiting), "the planner to know the run")
        wait_until(
            lambda: status(installation, asking).get("waiting") == 1, "its queue to count the run"
        )
        # By now both processes know the run that was submitted before, too.
        assert request(installation, bare, free) == {}
        counts = status(installation, bare)
        assert (counts["waiting"], counts["admitted"]) == (0, 0)
        set_queue(installation, asking, quota={})
        installation.wait_for_success(waiting, asking)
        installation.wait_for_success(free, bare)


def test_held_runs_begin_when_their_namespace_asks_no_longer(choosy_installation):
    installation = choosy_installation
    with installation.namespace({ENABLED_LABEL: "true"}) as team:
        set_queue(installation, team, quota={"runs": 0}, onControllerDown="hold")
        run = installation.submit(SHORT, team)
        assert is_held(installation.workflow(run, team))
        wait_until(
            lambda: said(installation, team, run).get("phase") == "Waiting", "the run to say so"
        )
        label(installation, team, None)
        installation.wait_for_success(run, team)
        wait_until(
            lambda: said(installation, team, run)["phase"] == "Finished", "its end to be said"
        )
        assert readiness(installation, team) == (False, "NamespaceExcluded")
