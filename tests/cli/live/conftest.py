"""The live commands against a cluster of plain dicts, at a fixed time."""

import copy
from datetime import UTC, datetime

import pytest

from kfp_placement.live.kinds import CORE_EVENTS, PLACEMENTS, WORKFLOWS
from kfp_placement.live.notebook import Run
from kfp_placement_engine.views.runs import NamedRun
from kfp_placement_kube.kinds import PODS
from tests.support.fake_cluster import FakeCluster
from tests.support.structural_schemas import MANIFESTS, documents

NOW = datetime(2026, 11, 20, 10, 3, tzinfo=UTC)
"""Three minutes after the submission of the sample run."""

HOSTILE = "\x1b[31mred\u202e\nnew line"
"""A text that would act on a terminal."""

(_TAXI,) = documents(MANIFESTS / "pipelineplacement-taxi.yaml")


def modified(*looks):
    """Changes of an object: how it looks after each."""
    return [("MODIFIED", look) for look in looks]


def placement(name="taxi-x7k2p", namespace="team-a", *, spec=None, status=None, **metadata):
    """The sample's PipelinePlacement, with changes."""
    raw = copy.deepcopy(_TAXI)
    raw["metadata"] |= {"name": name, "namespace": namespace, **metadata}
    raw["spec"] |= spec or {}
    raw["status"] |= status or {}
    return raw


def condition(kind, status="False", reason="WaitingForQuota", message="3/4 GPU are taken"):
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-20T10:00:01Z",
    }


def is_harmless(text):
    """Return whether nothing of `HOSTILE` acts on who reads the text."""
    return not {"\x1b", "\u202e"} & set(text)


def notebook_run(cluster, name="taxi-x7k2p"):
    """A run of namespace `team-a`, as a notebook has it."""
    return Run(cluster, NamedRun("team-a", name), now=lambda: NOW)


@pytest.fixture
def cluster():
    fake = FakeCluster()
    fake.serve(PLACEMENTS, PODS, WORKFLOWS, CORE_EVENTS)
    fake.put(placement())
    fake.put_namespace("team-a")
    return fake


@pytest.fixture
def connections(cluster, monkeypatch):
    """Connect everybody to that cluster; return the kubeconfigs and contexts that are asked for."""
    asked = []

    def connect(kubeconfig=None, context=None, _option=""):
        asked.append((kubeconfig, context))
        return cluster

    monkeypatch.setattr("kfp_placement.live.connection.ClusterApi.connect", connect)
    return asked


@pytest.fixture
def live(run, connections, monkeypatch):
    """Run a live command on that cluster."""
    for command in ("list", "explain", "watch", "queue", "history"):
        monkeypatch.setattr(f"kfp_placement.cli.commands.{command}.now", lambda: NOW)
    return run
