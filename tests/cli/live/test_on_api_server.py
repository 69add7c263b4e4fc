"""The live commands on a real API server, with objects made by the models."""

import contextlib
import json
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kfp_placement.live.kinds import PLACEMENTS
from kfp_placement_engine.contract.custom_resources import PipelinePlacement
from kfp_placement_engine.contract.keys import API_VERSION, PLAN_GATE
from kfp_placement_engine.contract.placement import PipelinePlacementSpec, PipelinePlacementStatus
from kfp_placement_engine.contract.rows import PlannedRow, StateRow, planned_row, state_row
from kfp_placement_engine.contract.shared_parts import Condition, ObjectMetadata
from kfp_placement_engine.model.reasons import reason
from kfp_placement_engine.model.step_state import Waiting
from kfp_placement_kube.json_text import read_json
from tests.cli.conftest import RUN
from tests.controlplane import housekeeping, objects
from tests.controlplane.argo.crds import custom_resource_definitions
from tests.controlplane.waiting import wait_until
from tests.support.api_client import a_transport
from tests.support.custom_resources import installed_crds
from tests.support.fake_cluster import executor_pod
from tests.support.structural_schemas import crds

RUN_ID = "5d0a3a5e-6f0c-4c3a-9d0f-2f6b8c1d7e10"
PROGRAM = [sys.executable, "-c", "from kfp_placement.cli import main; main()"]


@pytest.fixture(scope="module", autouse=True)
def kinds(control_plane):
    """Our kinds and Argo's are installed."""
    definitions = [*crds().values(), *custom_resource_definitions()]
    with installed_crds(control_plane.api, definitions):
        yield


@pytest.fixture
def live(run, control_plane):
    """Run a command as the administrator."""
    return replace(run, last=("--kubeconfig", control_plane.kubeconfig))


POLICY = {"apiVersion": API_VERSION, "kind": "PlacementPolicy", "metadata": {"name": "default"}}


@pytest.fixture
def policy(api):
    """The policy; gone after the test."""
    yield api.create({**POLICY, "spec": {}})
    api.delete(POLICY)


def is_paused(api):
    return api.get(API_VERSION, "PlacementPolicy", "default")["spec"]["paused"]


def placement(namespace):
    """A run of two steps on two nodes, submitted a minute ago."""
    submitted = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)
    rows = [
        PlannedRow("fetch", 0, 10, 42, reason("ends-first", seconds=12, node=1)),
        PlannedRow("train", 0, 47, 1249, reason("run-later", seconds=1200, node=1)),
    ]
    spec = PipelinePlacementSpec(
        workflow_uid="0d4a9f0e",
        revision=1,
        epoch=1,
        submitted_at=submitted,
        planned_at=submitted,
        makespan_seconds=1249.0,
        first_makespan_seconds=1249.0,
        nodes=("cloud", "edge"),
        steps=tuple(tuple(planned_row(row)) for row in rows),
    )
    metadata = ObjectMetadata(
        name="taxi-x7k2p", namespace=namespace, labels={"pipeline/runid": RUN_ID}
    )
    return PipelinePlacement(metadata=metadata, spec=spec)


def status(*rows):
    condition = Condition(
        type="LatencySatisfied",
        status="False",
        reason="LatencyRuleUnsatisfied",
        message="predict is beyond its rule",
        last_transition_time=datetime.now(UTC),
    )
    return PipelinePlacementStatus(
        phase="Running",
        revision=1,
        progress="0/2",
        conditions=(condition,),
        steps=tuple(tuple(state_row(row)) for row in rows),
    )


WAITING = status(
    StateRow("running", 1, 12),
    StateRow("waiting", waiting=Waiting("quota", 50, None, "exceeded quota: gpus")),
)
DONE = status(StateRow("succeeded", 1, 12, 44), StateRow("succeeded", 0, 47, 1260))


@pytest.fixture
def created(api, namespace):
    """A PipelinePlacement whose run waits."""
    api.create(placement(namespace).to_object())
    tell(api, namespace, WAITING)


def tell(api, namespace, new_status):
    """Write the status of the PipelinePlacement."""
    written = new_status.model_dump(mode="json", by_alias=True, exclude_none=True)
    current = api.get(API_VERSION, "PipelinePlacement", "taxi-x7k2p", namespace)
    api.replace({**current, "status": written}, part="status")


@pytest.mark.usefixtures("created")
def test_what_kubectl_prints(control_plane, namespace):
    """The printer columns, as the API server fills them in."""
    transport = a_transport(control_plane.kubeconfig)
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    answer = transport.send("GET", PLACEMENTS.path(namespace), {}, accept=accept)
    table = read_json(transport.read(answer, "the table"))
    titles = [column["name"] for column in table["columnDefinitions"] if not column["priority"]]
    (row,) = table["rows"]
    printed = dict(
        zip((column["name"] for column in table["columnDefinitions"]), row["cells"], strict=True)
    )
    assert titles == ["Name", "Phase", "Steps", "Planned makespan", "Age"]
    assert printed["Phase"] == "Running"
    assert printed["Steps"] == "0/2"
    assert printed["Planned makespan"] == "20m49s"
    assert printed["First plan"] == "20m49s"


@pytest.mark.usefixtures("created")
def test_list(live, namespace):
    result = live("list", "-n", namespace)
    assert result.exit_code == 0, result.stderr
    (line,) = result.stdout.splitlines()[1:]
    assert line.split()[:5] == ["taxi-x7k2p", "Running", "0/2", "20m49s", "same"]
    assert "1 for quota" in line
    assert "not LatencySatisfied" in line
    assert f"{namespace}   taxi-x7k2p" in live("list", "-A").stdout


@pytest.mark.usefixtures("created")
def test_explain_with_pods_and_events(live, api, namespace):
    raw = executor_pod("fetch", namespace=namespace, gates=(PLAN_GATE,))
    for each in ("uid", "creationTimestamp"):
        del raw["metadata"][each]
    pod = api.create(raw)
    note = "planned on cloud, placed on edge: cloud was full"
    api.create(
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "taxi.1", "namespace": namespace},
            "eventTime": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
            "reportingController": "kfp-placement.dev/controller",
            "reportingInstance": "extend-0",
            "action": "Placing",
            "reason": "PlacedElsewhere",
            "type": "Normal",
            "note": note,
            "regarding": {"kind": "Pod", "namespace": namespace, "uid": pod["metadata"]["uid"]},
        }
    )
    for name in ("taxi-x7k2p", RUN_ID):
        result = live("explain", "-n", namespace, name, "fetch")
        assert result.exit_code == 0, result.stderr
        assert note in result.stdout
        assert f"scheduling gate {PLAN_GATE} (ours)" in result.stdout
    assert "exceeded quota: gpus" in live("explain", "-n", namespace, "taxi-x7k2p").stdout
    assert live("explain", "-n", namespace, "taxi-x7k2p", "nothing").exit_code == 3


@pytest.mark.usefixtures("created")
def test_a_run_by_kfps_name_of_it(live, api, namespace):
    annotations = {"pipelines.kubeflow.org/run_name": "Run of Tuesday"}
    metadata = {"name": "taxi-x7k2p", "namespace": namespace, "annotations": annotations}
    api.create(
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": metadata,
            "spec": {"entrypoint": "a", "templates": [{"name": "a", "suspend": {}}]},
        }
    )
    result = live("explain", "-n", namespace, "Run of Tuesday")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"{namespace}/taxi-x7k2p (Run of Tuesday): Running")
    assert live("explain", "-n", namespace, "Run of Wednesday").exit_code == 3


@contextlib.contextmanager
def watching(control_plane, namespace, *options):
    """`watch` as a process of its own, which ends with the block."""
    command = [
        *PROGRAM,
        "watch",
        "taxi-x7k2p",
        f"--kubeconfig={control_plane.kubeconfig}",
        f"--namespace={namespace}",
        *options,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def next_line(process):
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return line


@pytest.mark.parametrize(
    ("phase", "code", "summary"),
    [
        ("Succeeded", 0, "took 21m, 11s more than first planned"),
        ("Failed", 1, "took 21m, was planned to take 20m49s"),
    ],
)
@pytest.mark.usefixtures("created")
def test_watch_to_the_end_through_a_restart(control_plane, api, namespace, phase, code, summary):
    with watching(control_plane, namespace, "--timeout=5m") as process:
        assert "Running, 0/2 steps ended" in next_line(process)
        tell(api, namespace, status(StateRow("succeeded", 1, 12, 44), StateRow("running", 0, 47)))
        assert "fetch: succeeded on edge, planned on cloud" in next_line(process)
        assert "train: running on cloud" in next_line(process)
        control_plane.restart("kube-apiserver")
        tell(api, namespace, DONE.model_copy(update={"phase": phase, "makespan_seconds": 1260.0}))
        out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    assert f"{phase}, 0/2 steps ended, {summary}" in out


@pytest.mark.usefixtures("created")
def test_watch_is_interrupted_and_times_out(control_plane, namespace):
    with watching(control_plane, namespace) as process:
        next_line(process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130
    with watching(control_plane, namespace, "--timeout=100ms") as process:
        process.communicate(timeout=60)
        assert process.returncode == 5


@pytest.mark.usefixtures("policy")
@pytest.mark.usefixtures("created")
def test_release_of_gated_pods(live, api, add_nodes, namespace):
    housekeeping.wait_until_none_is_gated(api, PLAN_GATE)
    add_nodes(objects.node("cloud"))
    others = [{"name": "example.com/hold"}]
    for name, gates in (("ours", []), ("both", others)):
        api.create(
            objects.pod(
                name,
                namespace,
                labels={"workflows.argoproj.io/workflow": "taxi-x7k2p"},
                schedulingGates=[{"name": PLAN_GATE}, *gates],
            )
        )
    assert f"would release {namespace}/ours" in live.output("release", "--dry-run")
    assert api.get("v1", "Pod", "ours", namespace)["spec"]["schedulingGates"]
    assert "2 pods released." in live.output("release")
    assert is_paused(api) is True
    housekeeping.wait_for_node(api, "ours", namespace)
    both = api.get("v1", "Pod", "both", namespace)["spec"]
    assert [gate["name"] for gate in both["schedulingGates"]] == ["example.com/hold"]
    assert live("release", "--resume").exit_code == 0
    assert is_paused(api) is False


def test_release_makes_the_policy_that_is_not_there(live, api):
    try:
        assert live("release").exit_code == 0
        assert is_paused(api) is True
    finally:
        api.delete(POLICY)


@pytest.fixture
def a_cluster(api, namespace, add_nodes):
    """Two nodes, one of which a pod takes room on, and a claim."""
    add_nodes(
        objects.node("cloud", {"cpu": "16"}, {"HOME-EDGE": "80ms"}),
        objects.node("edge", labels={"HOME-EDGE": "9.8ms", "kfp-placement.dev/speed": "0.5"}),
    )
    api.create(objects.pod("taken", namespace, {"cpu": "6"}, nodeName="edge"))
    api.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": namespace},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    )


def dumped(api):
    kinds = ("Node", "Pod", "PersistentVolumeClaim", "PersistentVolume")
    items = [each for kind in kinds for each in api.list("v1", kind)]
    ours = ("Location", "PlacementPolicy")
    items += [each for kind in ours for each in api.list(API_VERSION, kind)]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def planned(run, namespace, *options):
    how = ("--generations", 3, "--compare", "none", "-o", "json", "-n", namespace)
    document = json.loads(run.output("plan", RUN, *how, *options))
    assert document.pop("cluster")["nodes"]
    document.pop("planningSeconds")
    return document


@pytest.mark.usefixtures("a_cluster", "policy")
def test_a_plan_is_that_of_the_dumped_cluster(run, control_plane, api, namespace, tmp_path):
    api.create(
        {
            "apiVersion": API_VERSION,
            "kind": "Location",
            "metadata": {"name": "home-edge"},
            "spec": {
                "name": "HOME-EDGE",
                "static": [
                    {"topologyKey": "kubernetes.io/hostname", "value": "cloud", "rtt": "8ms"},
                    {"topologyKey": "kubernetes.io/hostname", "value": "edge", "rtt": "9ms"},
                ],
            },
        }
    )
    metadata = {"name": "home-edge"}
    try:
        api.patch(POLICY, {"spec": {"defaults": {"driver": "7s"}}})
        (tmp_path / "dump.json").write_text(json.dumps(dumped(api)))
        options = ("--kubeconfig", control_plane.kubeconfig, "--history", "none")
        live = planned(run, namespace, "-c", "live", *options)
        assert live == planned(run, namespace, "-c", "dump.json")
        predict = next(step for step in live["steps"] if step["name"] == "predict")
        assert predict["latencyMs"] in (8, 9)
        assert any("7s" in line for line in live["assumptions"])
    finally:
        api.delete({"apiVersion": API_VERSION, "kind": "Location", "metadata": metadata})


@pytest.mark.usefixtures("a_cluster")
def test_check_and_cluster(live, run, control_plane):
    run.output("check", RUN, "-c", "live", "--kubeconfig", control_plane.kubeconfig)
    assert "name: edge" in live.output("cluster", "live")


@pytest.fixture
def author(run, control_plane, namespace):
    """Run a command as someone with no rights but those given."""
    token = housekeeping.account_token(control_plane.api, namespace, "default")
    kubeconfig = control_plane.kubeconfig_for(f"author-{namespace}", token)
    return replace(run, last=("--kubeconfig", kubeconfig))


@pytest.fixture
def allow(api, namespace):
    """Give the author a right on the namespace, or on the cluster; taken back after the test."""
    made: list[Any] = []

    def give(rule, *, everywhere=False):
        prefix = "Cluster" if everywhere else ""
        group, name = "rbac.authorization.k8s.io", f"author-{namespace}-{len(made)}"
        place = {"name": name} if everywhere else {"name": name, "namespace": namespace}
        account = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
        role = {"apiGroup": group, "kind": f"{prefix}Role", "name": name}
        for item in (
            {"kind": f"{prefix}Role", "rules": [rule]},
            {"kind": f"{prefix}RoleBinding", "roleRef": role, "subjects": [account]},
        ):
            made.append(api.create({"apiVersion": f"{group}/v1", "metadata": place, **item}))

    yield give
    for item in made:
        api.delete(item)


def reads(resource):
    return {"apiGroups": [""], "resources": [resource], "verbs": ["get", "list", "watch"]}


@pytest.mark.usefixtures("a_cluster")
def test_rights_that_are_missing_are_named(author, allow, namespace):
    refused = author.message(1, "plan", RUN, "-c", "live", "-n", namespace)
    assert 'cannot list resource "nodes"' in refused
    assert "kfp-placement cluster live --output cluster.yaml" in refused

    allow(reads("nodes"), everywhere=True)
    allow(reads("pods"))
    options = ("--generations", 1, "--compare", "none", "-o", "json", "-n", namespace)

    def allowed():
        result = author("plan", RUN, "-c", "live", *options)
        return result.exit_code == 0 and json.loads(result.stdout)

    document = wait_until(allowed, "the rights to be known")
    messages = [each["message"] for each in document["warnings"] if each["code"] == "not-allowed"]
    (message,) = (each for each in messages if "volumes" in each)
    # Everybody may read Locations and policies where kfp-placement is installed, as it is not here.
    kinds = ("pods", "persistentvolumeclaims", "persistentvolumes", "locations")
    limits = ("placementpolicies", "resourcequotas", "limitranges")
    assert message.startswith(f"may not read {', '.join((*kinds, *limits))}: ")
    assert f"only pods of namespace {namespace}" in message
    assert "taken to be reachable from every node" in message


@pytest.mark.parametrize(
    ("words", "right"),
    [
        (["list", "-n", "default"], 'list resource "pipelineplacements"'),
        (["release"], 'get resource "placementpolicies"'),
    ],
)
def test_without_rights_on_our_kinds(author, words, right):
    result = author(*words)
    assert result.exit_code == 1
    assert f"cannot {right}" in result.stderr


def test_a_token_that_nobody_knows(run, control_plane):
    kubeconfig = control_plane.kubeconfig_for("stranger", "no-such-token")
    stderr = run.message(1, "list", "--kubeconfig", kubeconfig)
    assert "does not know the account of context kfp-placement-test; log in again" in stderr
