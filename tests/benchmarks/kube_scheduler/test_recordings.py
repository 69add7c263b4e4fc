"""The model against kube-scheduler itself: a control plane's log, and its plugins as a library."""

import dataclasses
from pathlib import Path

import pytest

from benchmarks.recording import Recording, read_recording
from benchmarks.scheduler import compare_recording
from tests.support.data import data_path

PLUGINS = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def real():
    return read_recording(data_path("kube-scheduler-1.36.3", "default-profile.json"))


def plugins(version: str) -> Recording:
    return read_recording(PLUGINS / f"plugins-{version}.json.gz")


def test_the_real_scheduler(real):
    """726 decisions, 5,738 pod-node pairs, 513 pods with one best node, 136 ties."""
    report = compare_recording(real)
    assert report.differences == ()
    assert (report.feasible.equal, report.feasible.total) == (726, 726)
    assert (report.scores.equal, report.scores.total) == (5_738, 5_738)
    assert (report.single_best.equal, report.single_best.total) == (513, 513)
    assert (report.ties.equal, report.ties.total) == (136, 136)
    assert report.ties_in_heap_order == 123


def test_the_recording_pins_the_version(real):
    """With 1.35's BalancedAllocation 5,426 of its scores are different."""
    report = compare_recording(dataclasses.replace(real, version=(1, 35)))
    assert report.scores.total - report.scores.equal == 5_426
    assert not report.agrees


@pytest.mark.parametrize("version", ["1.35.4", "1.36.3"])
def test_the_plugins_with_everything_at_once(version):
    """Taints, operators, sidecars, overhead, ports, spread, affinity between pods: all equal."""
    report = compare_recording(plugins(version))
    assert report.differences == ()
    assert report.pods == 540
    assert report.scores.total > 1_000
    assert report.single_best.total > 250
    # Nothing runs in parallel there, so the order is known and Go's heap explains every tie.
    assert report.ties_in_heap_order == report.ties.total > 3


def test_the_plugins_pin_the_version():
    """The two recordings are of different code: exchanged, they do not agree."""
    assert not compare_recording(dataclasses.replace(plugins("1.35.4"), version=(1, 36))).agrees
    assert not compare_recording(dataclasses.replace(plugins("1.36.3"), version=(1, 35))).agrees
