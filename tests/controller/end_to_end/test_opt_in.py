"""With `features/opt-in` only namespaces that ask for it take part."""

from collections.abc import Iterator

import pytest

from kfp_placement_engine.contract.keys import DEFAULT_SCHEDULER, ENABLED_LABEL
from tests.controller.end_to_end.history import History
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.taxi_runs import executors, schedulers_at_end
from tests.controlplane.waiting import wait_until
from tests.support.installation import Installation

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture
def history(choosy_installation: Installation) -> Iterator[History]:
    with History(choosy_installation.api) as watched:
        yield watched


@pytest.mark.parametrize("labels", [{}, {ENABLED_LABEL: "false"}, {ENABLED_LABEL: "yes"}])
def test_a_namespace_that_does_not_ask_for_it_is_left_alone(choosy_installation, history, labels):
    with choosy_installation.namespace(labels) as team:
        run = choosy_installation.submit(chain("bare", 0.2, 0.2), team)
        schedulers = schedulers_at_end(choosy_installation, run, team)
        assert schedulers == {"s1": "default-scheduler", "s2": "default-scheduler"}
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
        labels = {"metadata": {"labels": {ENABLED_LABEL: "true"}}}
        item = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}}
        installation.api.patch(item, labels)

        def is_placed() -> bool:
            # Admission learns of the label somewhat later.
            run = installation.submit(chain("late", 0.2), team)
            schedulers_at_end(installation, run, team)
            return installation.placement(run, team) is not None and DEFAULT_SCHEDULER in {
                pod["spec"]["schedulerName"] for pod in executors(installation, team).values()
            }

        wait_until(is_placed, "a run to be placed", 60)
        assert installation.placement(first, team) is None
