"""Files that users reported: what `check` and `plan` say of them is right."""

import importlib.util
from typing import Any

import pytest

from kfp_placement import Cluster, Node, check, preview
from tests.support.data import data_path
from tests.support.prepared_runs import codes

QUICK: dict[str, Any] = {"budget": "50ms", "compare": ()}


def case(name: str, file: str, pipeline: str = "") -> Any:
    """A file of a case, or a pipeline in it."""
    path = data_path("user-cases", name, file)
    if not pipeline:
        return str(path)
    spec = importlib.util.spec_from_file_location("reported", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, pipeline)


def of_step(report: Any) -> list[tuple[str, str, str]]:
    return [finding for finding in codes(report) if finding[2]]


@pytest.mark.parametrize("file", ["always.yaml", "default.yaml"])
def test_retries_with_a_policy_of_their_own_work(file):
    assert of_step(check(case("07-retry-warning-false", file))) == []


def test_gpus_that_the_api_server_refuses_are_errors(golden):
    name = "13-extended-resources-invalid"
    report = check(case(name, "gpu.yaml"), case(name, "cluster.yaml"))
    golden(str(report))
    assert of_step(report) == [
        ("error", "invalid-resource", step) for step in ("half", "request-only", "unlike")
    ]


def test_a_number_of_accelerators_without_a_type_is_a_warning(golden):
    report = check(case("14-accelerator-count-alone", "pipe.py", "gpu"))
    golden(str(report))
    assert ("warning", "accelerator-dropped", "train") in codes(report)


@pytest.mark.parametrize("cluster", [None, "cluster.yaml"])
def test_disk_that_a_cluster_file_does_not_state_keeps_no_step_off(cluster):
    name = "16-ephemeral-storage"
    where = {} if cluster is None else {"cluster": case(name, cluster)}
    plan = preview(case(name, "disk.yaml"), **where, **QUICK)
    assert plan.steps["main"].node is not None
    is_noticed = "disk-not-counted" in {notice.code for notice in plan.warnings}
    assert is_noticed == (cluster is not None)


def test_windows_is_left_out_and_arm64_is_a_warning(golden):
    name = "18-arm64-and-windows"
    pipeline, cluster = case(name, "pipe.py", "mixed"), case(name, "cluster.yaml")
    plan = preview(pipeline, cluster=cluster, **QUICK)
    assert {step.node for step in plan.steps.values()} == {"linux", "arm"}
    golden(str(check(pipeline, cluster)))


def test_two_zones_and_a_lost_claim_are_named(golden):
    name = "19-volumes-in-two-zones"
    report = check(case(name, "run.yaml"), case(name, "dump.yaml"))
    golden(str(report))
    assert [step for _, code, step in codes(report) if code == "unschedulable"] == ["both", "lost"]


def test_a_timeout_below_the_run_time_is_found(golden):
    pipeline = case("23-timeout-below-duration", "pipe.py", "late")
    report = check(pipeline)
    golden(str(report))
    assert "takes 30m and is killed after 10m (set_timeout)" in str(report)
    plan = preview(pipeline, cluster=Cluster([Node("n", cpu=4, memory="16Gi")]), **QUICK)
    assert "end-limit" in {notice.code for notice in plan.warnings}


@pytest.mark.parametrize("name", ["NVIDIA_TESLA_A100", "nvidia-tesla-t4", "gpu"])
def test_a_name_of_another_cloud_is_answered_with_the_whole_gpu_and_its_taint(name, tmp_path):
    workflow = tmp_path / "w.yaml"
    workflow.write_text(
        f"""
        apiVersion: argoproj.io/v1alpha1
        kind: Workflow
        metadata: {{name: w}}
        spec:
          entrypoint: main
          templates:
          - name: main
            container: {{image: "a:1", resources: {{limits: {{{name}: 1}}}}}}
        """,
        "utf-8",
    )
    slices = {"nvidia.com/mig-1g.5gb": 7}
    cluster = Cluster(
        [
            Node("mig", cpu=8, memory="32Gi", extended=slices),
            Node(
                "gpu",
                cpu=8,
                memory="32Gi",
                extended={**slices, "nvidia.com/gpu": 2},
                taints=["nvidia.com/gpu=present:NoSchedule"],
            ),
        ]
    )
    (finding,) = check(str(workflow), cluster).of("unschedulable")
    assert "these lines let it onto gpu" in finding.message
    assert "{nvidia.com/gpu: 1}" in finding.message
    assert "key: nvidia.com/gpu" in finding.message
    assert "mig-" not in finding.message


def test_more_attempts_than_nodes_that_differ_are_a_warning(tmp_path):
    workflow = tmp_path / "w.yaml"
    text = """
        apiVersion: argoproj.io/v1alpha1
        kind: Workflow
        metadata: {name: w}
        spec:
          entrypoint: main
          templates:
          - name: main
            retryStrategy: {limit: "LIMIT", affinity: {nodeAntiAffinity: {}}}
            container: {image: "a:1", resources: {requests: {cpu: 3}}}
        """
    small = Node("small", cpu=2, memory="4Gi")
    cluster = Cluster([Node("n", count=2, cpu=4, memory="4Gi"), small])
    for limit, expected in (("1", []), ("2", [("warning", "retry-nodes", "main")])):
        workflow.write_text(text.replace("LIMIT", limit), "utf-8")
        assert of_step(check(str(workflow), cluster)) == expected


@pytest.mark.parametrize(
    ("pipeline", "step", "parameter"),
    [
        ("inside", "condition-1.train", "memory"),
        ("item", "for-loop-1[*].train", "field cpu of the items of sizes"),
    ],
)
def test_a_parameter_that_the_sdk_loses_in_a_group_is_an_error(pipeline, step, parameter):
    report = check(case("26-parameter-lost-in-group", "pipe.py", pipeline))
    assert ("error", "lost-parameter", step) in codes(report)
    assert "unknown-resources" not in str(report)
    assert f"it reads {parameter}, which the SDK does not hand to" in str(report)


def test_branches_that_parameters_decide_are_not_planned():
    name = "01-known-condition"
    plan = preview(case(name, "pipe.py", "speed"), **QUICK)
    assert list(plan.steps) == ["condition-branches-1.condition-3.train-2"]
    assert 600 <= plan.makespan < 700
    toggle = case(name, "pipe.py", "toggle")
    for use_gpu in (False, True):
        report = check(toggle, "example:equal", arguments={"use_gpu": use_gpu})
        assert ("unschedulable" in [code for _, code, _ in codes(report)]) == use_gpu


def test_a_branch_that_a_step_decides_can_be_chosen():
    pipeline = case("26-parameter-lost-in-group", "pipe.py", "inside")
    assert len(preview(pipeline, **QUICK).steps) == 2
    assert len(preview(pipeline, branches={"condition-1": False}, **QUICK).steps) == 1
    left_out = check(pipeline, branches={"condition-1": False})
    assert "lost-parameter" not in [code for _, code, _ in codes(left_out)]
