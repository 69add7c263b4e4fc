"""Kueue's objects as anybody may have edited them: the queue goes on deciding."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_controller.warning_log import WarningLog
from tests.controller.queueing.kueue_scene import ADMISSION, ADMITTED, KueueScene

CONDITIONS = ["QuotaReserved", "Admitted", "Evicted", "Finished", "Active"]
STATES = ["True", "False", "Pending", "Ready", "Rejected", "Retry"]
RESET = "Reset to Pending after eviction. Previously: Rejected"
NAMES = ["cpu", "pods", "kfp-placement.dev/runs", "large", "ours", "team", "x" * 70, ""]
WORDS = st.sampled_from([*CONDITIONS, *STATES, RESET, *NAMES])
AMOUNTS = st.sampled_from(["0", "1", "500m", "0.1m", "-1", "1e30", 0, 1, -3])
NUMBERS = st.integers(-2, 300) | st.sampled_from([-(2**63), 2**31, 2**63, 10**30])
TIMES = st.sampled_from(
    ["2026-01-05T09:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "now"]
)
LEAVES = st.none() | st.booleans() | NUMBERS | st.floats() | WORDS | AMOUNTS | TIMES
ANYTHING = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3)
)

RUNS = ("waits", "runs", "stops")
EDITED = ("spec", "status")
OWNERS = ("metadata", "ownerReferences")
"""The API server keeps the rest of the metadata in order."""


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to everything in an object."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(tree, dict):
        inner = [*tree.items()]
    elif isinstance(tree, list):
        inner = [*enumerate(tree)]
    for key, value in inner:
        here = (*path, key)
        if here[0] in EDITED or here[:2] == OWNERS:
            yield here
        if here[0] in EDITED or here[:2] in (OWNERS[:1], OWNERS):
            yield from places(value, here)


def edited(draw: st.DrawFn, tree: dict[str, Any]) -> dict[str, Any]:
    """The object after some edits: a part of it is gone, twice there, or something else."""
    tree = deepcopy(tree)
    for _ in range(draw(st.integers(0, 4))):
        paths = [*places(tree)]
        if not paths:
            break
        *path, last = draw(st.sampled_from(paths))
        part: Any = tree
        for key in path:
            part = part[key]
        match draw(st.sampled_from(["delete", "double", "replace", "replace"])):
            case "delete":
                del part[last]
            case "double" if isinstance(part, list):
                part.append(deepcopy(part[last]))
            case _:
                part[last] = draw(ANYTHING)
    return tree


def a_scene_with_runs() -> KueueScene:
    """One run that waits, one that runs, and one that was preempted and still has a pod."""
    scene = KueueScene()
    for name in RUNS:
        scene.submit(name, cpu="3", memory="1Gi")
    scene.settle()
    fields: dict[str, Any] = {
        "admission": ADMISSION,
        "admissionChecks": [{"name": "ours", "state": "Ready", "message": "planned"}],
        "reclaimablePods": [{"name": "cpu", "count": 7}],
    }
    for name in ("runs", "stops"):
        scene.status(name, ADMITTED, **fields)
    scene.pod("stops", cpu=3000)
    evicted = {**ADMITTED, "Evicted": "preempted for another"}
    assert scene.status("stops", evicted, **fields) == ["stops stops for kueue"]
    return scene


def take_turn_openly(_log: WarningLog, _consequence: Any, turn: Any, _failed: Any) -> Any:
    """Take the place of the turn of each run: a defect is seen here."""
    return turn()


@given(st.data())
def test_whatever_others_make_of_kueues_objects_decisions_are_made(data):
    scene = a_scene_with_runs()
    draw = data.draw
    with patch.object(WarningLog, "take_turn", take_turn_openly):
        for name in RUNS:
            scene.workloads[name] = edited(draw, scene.workloads[name])
        scene.tell_kueue()
        scene.settle()
        scene.labels = draw(st.just(scene.labels) | st.dictionaries(WORDS, WORDS) | ANYTHING)
        scene.check = edited(draw, scene.check)
        scene.local = edited(draw, scene.local)
        scene.submit("new", 0.5, cpu="1")
        scene.tell_kueue()
        scene.settle()
    assert scene.phase("new") == "Waiting"
