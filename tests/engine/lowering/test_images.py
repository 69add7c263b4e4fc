"""Who holds an image: by its full reference for pulls, by its very name for kube-scheduler."""

import pytest

from kfp_placement_engine.model.node_rules.images import canonical
from kfp_placement_engine.search.baselines.default_scheduler import kube_default
from tests.support.builders import (
    GIBIBYTE,
    ROUND_NUMBERS,
    a_cluster,
    a_node,
    a_problem,
    a_run,
    a_step,
    plan_of,
)

FULL = "docker.io/library/python:3.12"
DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("python", "docker.io/library/python:latest"),
        ("python:3.12", FULL),
        ("library/python:3.12", FULL),
        ("docker.io/python:3.12", FULL),
        ("index.docker.io/library/python:3.12", FULL),
        (FULL, FULL),
        ("kubeflow/tool:1", "docker.io/kubeflow/tool:1"),
        ("123/tool:1", "docker.io/123/tool:1"),
        ("localhost/tool", "localhost/tool:latest"),
        ("Team/tool", "Team/tool:latest"),
        ("registry:5000/tool", "registry:5000/tool:latest"),
        ("ghcr.io/team/tool:1", "ghcr.io/team/tool:1"),
        (f"python@{DIGEST}", f"docker.io/library/python@{DIGEST}"),
        (f"python:3.12@{DIGEST}", f"docker.io/library/python@{DIGEST}"),
        (f"registry:5000/tool@{DIGEST}", f"registry:5000/tool@{DIGEST}"),
    ],
)
def test_a_reference_in_full(image, full):
    """As the reference library of Docker and containerd reads it; what is full stays so."""
    assert canonical(image) == full
    assert canonical(full) == full


@pytest.mark.parametrize("reported", ["python:3.12", FULL])
@pytest.mark.parametrize("asked", ["python:3.12", FULL])
def test_nothing_is_pulled_where_the_image_is_held_under_any_name(reported, asked):
    """The node that holds it wins, the step waits for no pull, and no size is assumed."""
    cluster = a_cluster(a_node("lacks"), a_node("holds", images={reported: 1000}))
    run = a_run(a_step("a", image=asked))
    plan = plan_of(run, cluster, assumptions=ROUND_NUMBERS)
    assert plan.steps[0].node == "holds"
    assert plan.steps[0].phases.image_pull_seconds == 0
    assert not [text for text in plan.grounds.assumptions if "image" in text]


def test_two_names_of_one_image_are_pulled_once():
    """Its size is the one reported: 1000 B at 50 B/s."""
    steps = (a_step("a", image="python:3.12"), a_step("b", "a", image=FULL))
    cluster = a_cluster(a_node("full", cpu=0, images={FULL: 1000}), a_node("works"))
    plan = plan_of(a_run(*steps), cluster, assumptions=ROUND_NUMBERS)
    assert [step.phases.image_pull_seconds for step in plan.steps] == [20, 0]


@pytest.mark.parametrize(("reported", "node"), [("big:1", 1), ("docker.io/library/big:1", 0)])
def test_kube_scheduler_scores_only_the_very_name(reported, node):
    """1 GiB held draws a pod to the fuller node, unless the node calls it something else."""
    cluster = a_cluster(
        a_node("empty", cpu=16),
        a_node("holds", cpu=16, used={"cpu": 1000}, images={reported: GIBIBYTE}),
    )
    problem = a_problem(a_run(a_step("a", image="big:1")), cluster)
    assert kube_default(problem, 0).node.tolist() == [node]


def test_a_node_will_name_what_it_pulls_as_the_holders_do():
    """What `first` pulls draws `same` to its node only where nodes report the name it asks for."""
    run = a_run(
        a_step("first", seconds=1000, image="big:1"),
        a_step("early", seconds=5),
        a_step("same", "early", seconds=5, image="big:1"),
    )
    for reported, where in (("big:1", [0, 1, 0]), ("docker.io/library/big:1", [0, 1, 1])):
        members = [
            *(a_node(f"n{n}", cpu=16, pull_bytes_per_second=2.0**30) for n in (1, 2)),
            a_node("holder", cpu=0, images={reported: GIBIBYTE}),
        ]
        schedule = kube_default(a_problem(run, a_cluster(*members)), 0)
        assert schedule.node.tolist() == where
