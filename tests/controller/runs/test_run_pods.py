"""What is kept of the pods of a run that somebody has deleted."""

from datetime import timedelta

import pytest

from kfp_placement_controller.runs.run_pods import RunPods
from kfp_placement_engine.readers.tree.run_outcomes import PodIdentity, PodRole
from tests.controller.planning.builders import START, a_pod


class Index:
    """Pods are named after their step; those of `nothing` are of none."""

    def of_pod(self, pod):
        return self.identify(pod.name)

    def identify(self, name):
        step = name.partition("-")[0]
        return (
            None
            if step == "nothing"
            else PodIdentity(step, PodRole.EXECUTOR, is_group=False, iteration=(), attempt=0)
        )


def observed(*names, phase="Failed"):
    pods = RunPods(Index())
    for number, name in enumerate(names):
        pod = a_pod(name=name, uid=name, phase=phase, node_name="a", created_at=None)
        pods.observe(pod, START + timedelta(seconds=number))
        pods.forget(pod)
    return pods


def test_of_the_attempts_that_are_gone_the_last_two_stay():
    pods = observed(*(f"train-{number}" for number in range(9)), "other-0")
    assert sorted(each.pod.name for each in pods) == ["other-0", "train-7", "train-8"]
    assert pods.executor("train").pod.name == "train-8"
    assert len(pods.executors("train")) == 2
    assert pods.has_begun()


@pytest.mark.parametrize(
    ("name", "phase"), [("nothing-0", "Failed"), ("train-0", "Pending"), ("train-0", "Running")]
)
def test_nothing_stays_of_a_pod_of_no_step_or_one_that_had_not_ended(name, phase):
    assert not observed(name, phase=phase)
    assert observed(name, phase=phase).executor("train") is None


def test_what_is_gone_and_of_no_step_of_another_graph_goes_too():
    class Empty(Index):
        def identify(self, name):
            return None

    pods = observed("train-0")
    pods.use_index(Empty())
    assert not pods
