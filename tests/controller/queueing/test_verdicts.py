"""Verdicts as people read them."""

import pytest

from kfp_placement_controller.queueing.verdicts import Lack, Rule, Verdict, lacks_text, verdict_text
from kfp_placement_engine.model.keys import RunKey

KEY = RunKey("team", "run")


@pytest.mark.parametrize(
    ("lacks", "text"),
    [
        ([Lack(Rule.QUOTA, "cpu", 8000)], "lacks 8 cpu of the quota"),
        ([Lack(Rule.QUOTA, "cpu", 500)], "lacks 500m cpu of the quota"),
        ([Lack(Rule.QUOTA, "runs", 1)], "lacks 1 run of the quota"),
        (
            [Lack(Rule.QUOTA_SIZE, "runs", 2)],
            "needs 2 runs more than the whole quota, and waits until that is raised",
        ),
        (
            [Lack(Rule.CAPACITY, "cpu", 1000), Lack(Rule.CAPACITY, "memory", 2**30)],
            "lacks 1 cpu and 1Gi memory of the cluster",
        ),
        (
            [Lack(Rule.QUOTA, name, 1000) for name in ("cpu", "a/b", "c/d")],
            "lacks 1 cpu, 1000 a/b and 1000 c/d of the quota",
        ),
        ([Lack(Rule.NO_NODE, "nvidia.com/gpu", 2)], "needs 2 nvidia.com/gpu, which no node has"),
        (
            [Lack(Rule.GANGS, "pods", 1)],
            "has pods that must run together, and lacks room for 1 pod",
        ),
        (
            [Lack(Rule.GANG_SIZE, "pods", 3)],
            "has pods that must run together, and the empty cluster has no room for 3 pods",
        ),
        (
            [Lack(Rule.STEP, reason="train is large")],
            "has a step that fits no node: train is large",
        ),
    ],
)
def test_what_is_lacking_is_one_plain_sentence(lacks, text):
    assert lacks_text(lacks) == text


@pytest.mark.parametrize(
    ("position", "text"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th"),
     (21, "21st"), (111, "111th"), (122, "122nd")],
)  # fmt: skip
def test_a_position_is_an_ordinal(position, text):
    verdict = Verdict(KEY, (Lack(Rule.QUOTA, "cpu", 8000),), position, 200)
    assert verdict_text(verdict) == f"{text} of 200, lacks 8 cpu of the quota"


def test_an_admitted_run_lacks_nothing():
    assert verdict_text(Verdict(KEY)) == "admitted"


def test_every_rule_has_a_sentence():
    assert all(lacks_text([Lack(rule, "pods", 2)]) for rule in Rule)
