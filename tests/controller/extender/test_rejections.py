"""Pods that a kubelet refused for want of room are counted, once each."""

import dataclasses

import pytest

from kfp_placement_controller.extender.contention import count_rejection
from kfp_placement_controller.observed.pods import ReasonAndMessage
from kfp_placement_kube.change import Change
from tests.controller.extender.cluster import asked
from tests.support.scraping import own_metric

OURS = ("kfp-placement",)


def failed(reason: str, scheduler: str = "kfp-placement"):
    pod = asked(node="a", phase="Failed")
    return dataclasses.replace(
        pod, failure=ReasonAndMessage(reason, "no"), scheduler_name=scheduler
    )


@pytest.mark.parametrize(
    ("old", "new", "scheduler", "expected"),
    [
        (asked(node="a"), failed("OutOfcpu"), "ours", 1),
        (asked(node="a"), failed("OutOfmemory", "default-scheduler"), "another", 1),
        (asked(node="a"), failed("Evicted"), "ours", 0),
        (failed("OutOfcpu"), failed("OutOfcpu"), "ours", 0),
        (asked(node="a"), asked(node="a", phase="Succeeded"), "ours", 0),
        # What had happened before we came is not counted again after every restart.
        (None, failed("OutOfcpu"), "ours", 0),
        (failed("OutOfcpu"), None, "ours", 0),
    ],
)
def test_refused_pods(old, new, scheduler, expected):
    before = own_metric("pods_rejected_total", scheduler=scheduler)
    count_rejection(Change(("team-a", "pod"), old, new), OURS)
    assert own_metric("pods_rejected_total", scheduler=scheduler) - before == expected
