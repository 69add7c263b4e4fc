import json
from pathlib import Path

import pytest
import yaml

from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterUnreachableError
from kfp_placement.live.kinds import PLACEMENTS
from kfp_placement_kube.kinds import NAMESPACES
from tests.cli.live.conftest import HOSTILE, condition, is_harmless, placement


def rows(result):
    heading, *lines = result.stdout.splitlines()
    return heading.split(), lines


def test_a_run(live, golden):
    golden(live.output("list"))


def test_wide_and_all_namespaces(live, cluster):
    cluster.put(placement("other", "team-b", status={"makespan": "20m"}))
    result = live("list", "-A", "-o", "wide")
    heading, lines = rows(result)
    assert heading[:5] == ["NAMESPACE", "RUN", "RUN", "ID", "RUN"]
    assert "DISPATCH REVISION SUBMITTED" in " ".join(heading)
    assert [line.split()[:2] for line in lines] == [["team-a", "taxi-x7k2p"], ["team-b", "other"]]
    assert "20m" in lines[1]
    # Only its own namespace's without -A.
    assert "other" not in live("list").stdout
    assert "other" in live("list", "-n", "team-b").stdout


def test_latest_first(live, cluster):
    cluster.put(placement("aa-old", spec={"submittedAt": "2026-11-19T10:00:00Z"}))
    cluster.put(placement("new", spec={"submittedAt": "2026-11-20T10:02:00Z"}))
    _, lines = rows(live("list"))
    assert [line.split()[0] for line in lines] == ["new", "taxi-x7k2p", "aa-old"]


def test_documents(live):
    result = live("list", "-o", "json")
    document = json.loads(result.stdout)
    assert (document["apiVersion"], document["kind"]) == ("kfp-placement.dev/v1alpha1", "RunList")
    (item,) = document["items"]
    assert item["makespanSeconds"] == 1375
    assert item["firstMakespanSeconds"] == 1385
    assert item["counts"]["running"] == 1
    assert item["runId"] == "5d0a3a5e-6f0c-4c3a-9d0f-2f6b8c1d7e10"
    assert item["ageSeconds"] == 180
    assert [each["type"] for each in item["conditions"]] == ["Planned", "LatencySatisfied"]
    assert yaml.safe_load(live("list", "-o", "yaml").stdout) == document


@pytest.mark.parametrize("output_format", ["wide", "json"])
def test_what_others_wrote_cannot_act_on_the_terminal(live, cluster, output_format):
    conditions = [condition("Schedulable", message=HOSTILE)]
    changed = placement(status={"conditions": conditions, "phase": HOSTILE, "progress": HOSTILE})
    changed["metadata"]["annotations"] = {"pipelines.kubeflow.org/run_name": HOSTILE}
    changed["metadata"]["labels"] = {"pipeline/runid": HOSTILE}
    cluster.put(changed)
    assert is_harmless(live.output("list", "-o", output_format))


@pytest.mark.parametrize(
    "changes",
    [
        {"spec": {"submittedAt": "yesterday"}},
        {"spec": {"nodes": "none"}},
        {"status": {"counts": [1]}},
        {"spec": {"makespan": "1e400s"}},
    ],
    ids=str,
)
def test_one_that_cannot_be_read_hides_no_others(live, cluster, changes):
    cluster.put(placement("broken", **changes))
    _, lines = rows(live("list"))
    assert [line.split()[:2] for line in lines] == [
        ["taxi-x7k2p", "Running"],
        ["broken", "Unreadable"],
    ]
    assert "PipelinePlacement 'broken'" in lines[1]


def test_none(live, cluster, golden):
    cluster.remove(PLACEMENTS, "taxi-x7k2p", "team-a")
    result = live("list")
    assert (result.exit_code, result.stdout) == (0, "")
    golden(result.stderr, "in a namespace")
    golden(live("list", "-A").stderr, "in all namespaces")
    assert live.document("list")["items"] == []


def test_no_controller(live, cluster, golden):
    cluster.forget(PLACEMENTS)
    golden(live.message(3, "list"))


@pytest.mark.parametrize(
    "error", [ClusterForbiddenError("may not"), ClusterUnreachableError("up?")]
)
def test_a_refusal_is_one_line(live, cluster, error):
    cluster.refused["/"] = error
    result = live("list")
    assert (result.exit_code, result.stderr) == (1, f"Error: {error}\n")


def test_where_to_look(live, connections, golden):
    live("list", "--kubeconfig", "some.yaml", "--context", "prod")
    assert connections == [(Path("some.yaml"), "prod")]
    golden(live.message(2, "list", "-n", "team-b", "-A"))


def test_a_namespace_that_is_none(live, cluster, golden):
    result = live("list", "-n", "typo")
    golden(result.stderr)
    warning, none = result.stderr.splitlines()
    assert "no namespace typo" in warning
    assert "No runs" in none
    assert "no namespace typo" in live("list", "-n", "typo", "-o", "json").stderr
    cluster.refused[NAMESPACES.path()] = ClusterForbiddenError("may not")
    assert "no namespace" not in live("list", "-n", "typo").stderr


@pytest.mark.parametrize(
    "written", [["-o=json"], ["-ojson"], ["--output", "json"], ["--output=json"]]
)
def test_formats_as_people_write_them_for_kubectl(live, written):
    assert json.loads(live("list", *written).stdout)["kind"] == "RunList"
    document = json.loads(live("explain", "taxi-x7k2p", *written).stdout)
    assert document["kind"] == "RunExplanation"


def test_no_such_format(live):
    assert "'xml' is not one of" in live.message(2, "list", "-o=xml")
