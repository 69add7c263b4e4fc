"""How large an image is: who is believed, what is usual, and what a plan says of it."""

import pytest

from kfp_placement_engine.model.node_rules.images import (
    UNKNOWN_IMAGE_BYTES,
    ImageSize,
    SizeSource,
    image_sizes,
    usual_size,
)
from tests.support.builders import (
    a_cluster,
    a_node,
    a_run,
    a_step,
    cluster_of,
    nodes,
    notice_of,
    plan_of,
)

MIB = 2**20
TOOL = "docker.io/team/tool:1"
DIGEST = "sha256:" + "0" * 64


def size_of(*steps, cluster=None, default_bytes=None):
    (size,) = image_sizes(cluster or a_cluster(), [steps], default_bytes).values()
    return size.size_bytes, size.source


def planned(*steps, cluster=None, **options):
    cluster = cluster or cluster_of(3)
    return plan_of(a_run(*steps), cluster, generations=1, **options)


def assumed_of_images(plan):
    return [text for text in plan.grounds.assumptions if "image" in text]


def test_the_nearer_to_the_image_the_more_it_counts():
    """A node that holds it, a step, the list of the cluster's source, its default, the table."""
    plain, stated = (
        a_step("a", image="python:3.12"),
        a_step("b", image="python:3.12", image_bytes=2),
    )
    listing = a_cluster(image_bytes={"docker.io/library/python:3.12": 3})
    holding = a_cluster(a_node(images={"python:3.12": 1}), image_bytes={"python:3.12": 3})
    assert size_of(plain, stated, cluster=holding, default_bytes=4) == (1, SizeSource.NODE)
    assert size_of(plain, stated, cluster=listing, default_bytes=4) == (2, SizeSource.STEP)
    assert size_of(plain, cluster=listing, default_bytes=4) == (3, SizeSource.LISTED)
    assert size_of(plain, default_bytes=4) == (4, SizeSource.DEFAULT)
    assert size_of(plain) == (390 * MIB, SizeSource.USUAL)
    assert size_of(a_step("a", image=TOOL)) == (UNKNOWN_IMAGE_BYTES, SizeSource.UNKNOWN)


def test_a_size_of_0_is_a_size():
    cluster = a_cluster(a_node(images={TOOL: 0}))
    assert size_of(a_step("a", image=TOOL), cluster=cluster) == (0, SizeSource.NODE)
    assert size_of(a_step("a", image=TOOL, image_bytes=0)) == (0, SizeSource.STEP)
    assert size_of(a_step("a", image=TOOL), default_bytes=0) == (0, SizeSource.DEFAULT)


def test_an_image_has_one_size_under_all_its_names():
    """Of several that steps state the largest, since a smaller one may be of a part."""
    steps = [
        a_step("a", image="team/tool:1", image_bytes=5),
        a_step("b", image=TOOL, image_bytes=9),
        a_step("c", image="team/tool:1"),
        a_step("d"),
    ]
    assert image_sizes(a_cluster(), [steps], None) == {TOOL: ImageSize(9, SizeSource.STEP)}


def test_a_size_that_namespaces_disagree_about_does_not_count():
    users = [[a_step("a", image=TOOL, image_bytes=size)] for size in (2**50, None)]
    assert image_sizes(a_cluster(), users[:1], 7) == {TOOL: ImageSize(2**50, SizeSource.STEP)}
    assert image_sizes(a_cluster(), users, 7) == {TOOL: ImageSize(7, SizeSource.DEFAULT)}


@pytest.mark.parametrize(
    ("image", "mebibytes"),
    [
        ("python:3.12", 390),
        ("python", 390),
        ("docker.io/library/python:3.9-bookworm", 390),
        ("python:3.12-slim", 41),
        ("python:3.12-slim-trixie", 41),
        ("python:alpine3.9", 18),
        (f"python:3.12-slim@{DIGEST}", 41),
        ("alpine:3.20", 4),
        ("debian:bookworm-slim", 28),
        ("nvidia/cuda:12.6.0-devel-ubuntu24.04", 4000),
        ("nvidia/cuda:12.6.0-cudnn-runtime-ubuntu24.04", 1300),
        ("pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime", 3200),
        ("tensorflow/tensorflow:2.20.0-gpu", 3400),
    ],
)
def test_common_bases_have_their_usual_size(image, mebibytes):
    assert usual_size(image) == mebibytes * MIB


@pytest.mark.parametrize(
    "image",
    [
        f"python@{DIGEST}",  # any variant of it
        "quay.io/library/python:3.12",
        "team/python:3.12",
        "pythonic:3.12",
        "registry:5000/python:slim",
        "xgboost",
        "",
        "::",
        "@",
    ],
)
def test_other_images_have_none(image):
    assert usual_size(image) is None


def test_an_unknown_image_is_warned_of_once_and_pulled(golden):
    """400Mi at 50 MB/s."""
    steps = (a_step("a", image=TOOL), a_step("b", image="other:1"), a_step("c", "a", image=TOOL))
    plan = planned(*steps)
    notice = notice_of(plan, "unknown-images")
    golden(notice.message, "warning")
    golden(assumed_of_images(plan), "assumed")
    assert plan.steps[0].phases.image_pull_seconds == pytest.approx(400 * MIB / 50e6)


@pytest.mark.parametrize(
    "changes", [{"image": "python:3.12"}, {"image": TOOL, "image_bytes": 5}, {"image": ""}]
)
def test_what_is_told_is_not_warned_of(changes):
    plan = planned(a_step("a", **changes))
    assert "unknown-images" not in {notice.code for notice in plan.notices}


def test_a_default_that_somebody_sets_is_not_warned_of_but_assumed(golden):
    cluster = a_cluster(*nodes(2), defaults={"image_bytes": 3 * 2**30})
    plan = planned(a_step("a", image=TOOL), a_step("b", image="python:3.12"), cluster=cluster)
    assert "unknown-images" not in {notice.code for notice in plan.notices}
    golden(assumed_of_images(plan))


def test_usual_sizes_stand_among_what_is_assumed(golden):
    plan = planned(a_step("a", image="python:3.12"), a_step("b", image="alpine"))
    golden(assumed_of_images(plan))


def test_a_large_image_keeps_its_users_on_one_node():
    """Two steps of 10 s, one after the other on one node: 10 GiB takes longer than to wait."""
    pair = [a_step(name, cpu=4, image=TOOL, image_bytes=10 * 2**30) for name in ("a", "b")]
    members = [a_node("n1", cpu=4), a_node("n2", cpu=4)]
    ends = planned(*pair, cluster=a_cluster(*members))
    assert len({step.node for step in ends.steps}) == 2
    held = a_node("n1", cpu=4, images={TOOL: 10 * 2**30})
    ends = planned(*pair, cluster=a_cluster(held, members[1]), dispatch="ordered")
    assert {step.node for step in ends.steps} == {"n1"}
