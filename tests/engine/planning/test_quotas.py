"""ResourceQuotas and LimitRanges of the run's namespace: what they refuse, change and leave."""

from dataclasses import replace
from typing import Any

import pytest

from kfp_placement_engine.model.run_graph import RunClaim
from kfp_placement_engine.planning.hindrances.quotas import with_namespace_rules
from kfp_placement_engine.readers.kubernetes.dumps import read_dump
from kfp_placement_engine.readers.kubernetes.quotas import claim_usage
from tests.controlplane.argo.small_workflows import task
from tests.engine.readers.argo.test_plain_workflows import WORK, dag, read

GIB = 2**30
NODE = {
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "32", "memory": "64Gi", "pods": "110"}},
}


def quota(scopes: Any = (), used: Any = None, namespace: str = "team", **hard: Any) -> Any:
    named = {name.replace("_", "."): amount for name, amount in hard.items()}
    return {
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": namespace},
        "spec": {"hard": named, "scopes": list(scopes)},
        "status": {"used": used or {}},
    }


def limit_range(kind: str = "Container", **bounds: Any) -> Any:
    return {
        "kind": "LimitRange",
        "metadata": {"name": "r", "namespace": "team"},
        "spec": {"limits": [{"type": kind, **bounds}]},
    }


def ruled(*objects: Any, resources: Any = None, count: int = 1, namespace: str = "team") -> Any:
    """A run of equal steps under the rules of these objects."""
    container = {"image": "a:1", "resources": resources or {}}
    tasks = dag(*(task(f"t{number}") for number in range(count)))
    run = read([tasks, {**WORK, "container": container}])
    cluster = read_dump([NODE, *objects], name="dump")
    return with_namespace_rules(replace(run, namespace=namespace), cluster)


def noticed(run: Any) -> list[str]:
    return [notice.code for notice in run.notices]


def sentences(run: Any) -> str:
    return " ".join(notice.message for notice in run.notices)


def test_defaults_of_a_limit_range_become_requests():
    defaults = limit_range(default={"cpu": "1", "memory": "1Gi"}, defaultRequest={"cpu": "250m"})
    run = ruled(defaults)
    assert run.steps[0].requests == {"cpu": 250, "memory": GIB}
    assert noticed(run) == ["limit-range-default"]
    assert "Argo's container wait in its pod gets requests, too" in sentences(run)
    own = ruled(defaults, resources={"requests": {"cpu": "1", "memory": "512Mi"}})
    assert own.steps[0].requests == {"cpu": 1000, "memory": GIB // 2}
    assert own.notices == ()


def test_the_bounds_of_a_limit_range_are_defaults_where_it_states_none():
    run = ruled(limit_range(max={"memory": "2Gi"}, min={"cpu": "100m"}))
    assert run.steps[0].requests == {"cpu": 100, "memory": 2 * GIB}
    assert "limit-range" not in noticed(run)


REFUSED = {
    "above the most": ({"max": {"cpu": "1"}}, {"limits": {"cpu": "2"}}, "maximum cpu usage"),
    "below the least": ({"min": {"cpu": "1"}}, {"requests": {"cpu": "500m"}}, "minimum cpu usage"),
    "ratio": (
        {"maxLimitRequestRatio": {"cpu": "2"}},
        {"requests": {"cpu": 1}, "limits": {"cpu": 3}},
        "ratio per Container in LimitRange r is 2, its own is 3",
    ),
    "default limit below the request": (
        {"default": {"cpu": "1"}},
        {"requests": {"cpu": "2"}},
        "is above the limit of cpu 1 that a LimitRange gives it; state a limit:"
        ' task.set_cpu_limit("',
    ),
}


@pytest.mark.parametrize(("bounds", "resources", "why"), REFUSED.values(), ids=REFUSED)
def test_pods_out_of_range_are_refused(bounds, resources, why):
    run = ruled(limit_range(**bounds), resources=resources)
    assert noticed(run) == ["limit-range"]
    assert why in sentences(run)


def test_bounds_of_pods_count_their_containers_together():
    run = ruled(limit_range("Pod", max={"cpu": "1"}), resources={"limits": {"cpu": "2"}})
    assert "per Pod" in sentences(run)
    assert ruled(limit_range("Pod", max={"cpu": 2}), resources={"limits": {"cpu": 2}}).notices == ()


def test_the_amount_that_is_out_of_range_is_named_with_the_namespace():
    bounds = limit_range(max={"memory": "12Gi"}, default={"memory": "2Gi"})
    run = ruled(bounds, resources={"requests": {"memory": "16Gi"}})
    assert "in LimitRange r is 12Gi, but its request is 16Gi" in sentences(run)
    assert sentences(run).count("Kubernetes will refuse its pod in namespace team") == 2
    run = ruled(bounds, resources={"limits": {"memory": "16Gi"}})
    assert "in LimitRange r is 12Gi, but its limit is 16Gi" in sentences(run)


def made_by_argo(kind: str, *objects: Any, patch: str = "") -> Any:
    template = {"name": "work", kind: {"action": "create", "manifest": "{kind: ConfigMap}"}}
    run = read([dag(task("a")), {**template, "podSpecPatch": patch}])
    cluster = read_dump([NODE, *objects], name="dump")
    return with_namespace_rules(replace(run, namespace="team"), cluster)


@pytest.mark.parametrize("kind", ["resource", "data"])
def test_the_executor_of_argo_is_not_judged_unless_a_patch_states_its_resources(kind):
    rules = (
        quota(requests_cpu="4", limits_memory="8Gi"),
        limit_range(min={"cpu": "1"}),
        limit_range("Pod", min={"cpu": "1"}, max={"cpu": 2}),
    )
    assert noticed(made_by_argo(kind, *rules)) == []
    patch = '{"containers": [{"name": "main", "resources": {"requests": {"cpu": 1}}}]}'
    codes = noticed(made_by_argo(kind, *rules, patch=patch))
    assert "quota" in codes
    assert "limit-range" in codes


@pytest.mark.parametrize("name", ["cpu", "requests_cpu"])
def test_a_pod_larger_than_the_quota_is_never_made(name):
    run = ruled(quota(**{name: "1"}), resources={"requests": {"cpu": "2"}})
    assert "quota" in noticed(run)
    assert "exceeded quota, requested requests.cpu 2, limited requests.cpu 1" in sentences(run)


def test_a_quota_makes_containers_state_what_it_counts():
    run = ruled(quota(requests_cpu="4", limits_memory="8Gi"), resources={"requests": {"cpu": 1}})
    assert "must specify limits.memory" in sentences(run)
    defaults = limit_range(default={"memory": "1Gi"})
    filled = ruled(quota(limits_memory="8Gi"), defaults, resources={"requests": {"cpu": 1}})
    assert "quota" not in noticed(filled)


def test_a_quota_of_no_pods_is_one_sentence():
    run = ruled(quota(pods="0", requests_cpu="1"), resources={"requests": {"cpu": 2}}, count=5)
    (notice,) = run.notices
    assert "allows no pods" in notice.message
    assert notice.step == ""


def test_how_many_steps_the_quota_lets_run_at_once():
    resources = {"requests": {"cpu": "2"}}
    run = ruled(quota(requests_cpu="9", used={"requests.cpu": "2"}), resources=resources, count=5)
    assert noticed(run) == ["quota-room"]
    assert (
        "has 7 of requests.cpu 9 left, so at most 3 of 5 steps (t0, t1, t2, t3, t4)"
        in sentences(run)
    )
    assert ruled(quota(requests_cpu="10"), resources=resources, count=5).notices == ()


def test_a_quota_that_is_used_up_lets_no_step_start_yet():
    resources = {"requests": {"cpu": "2"}}
    run = ruled(quota(requests_cpu="4", used={"requests.cpu": "3"}), resources=resources)
    assert noticed(run) == ["quota-room"]
    assert "so t0 cannot start until other pods of the namespace end" in sentences(run)
    larger = ruled(quota(requests_cpu="1"), resources=resources)
    assert noticed(larger) == ["quota"]


def test_gpus_and_pods_are_counted_and_other_objects_are_not():
    hard = {"requests.nvidia.com/gpu": "1", "persistentvolumeclaims": "0", "requests.storage": "0"}
    gpu = {"limits": {"nvidia.com/gpu": 1}}
    assert "at most 1 of 2 steps (t0, t1)" in sentences(
        ruled(quota(**hard), resources=gpu, count=2)
    )
    assert "at most 2 of 3 steps" in sentences(ruled(quota(pods="2"), count=3))


def test_a_quota_of_some_pods_is_named_and_another_namespace_does_not_count():
    assert noticed(ruled(quota(["Terminating"], pods="0"))) == ["quota-scope"]
    assert noticed(ruled(quota(pods="0"), namespace="other")) == []


@pytest.mark.parametrize(
    "objects", [[quota(pods="0")], [quota(pods="0"), quota(pods="0", namespace="b")]]
)
def test_rules_of_namespaces_do_not_count_for_a_run_whose_namespace_is_not_known(objects):
    run = ruled(*objects, limit_range(defaultRequest={"cpu": 1}), namespace="")
    assert noticed(run) == ["quota-namespace"]
    assert "team are not used" in sentences(run)
    assert "--namespace" in sentences(run)
    assert run.steps[0].requests == {}
    assert not run.notices[0].is_refusal


def test_a_bad_quota_is_left_out():
    cluster = read_dump([NODE, quota(pods="x"), limit_range(max={"cpu": "x"})], name="dump")
    assert [notice.code for notice in cluster.notices] == ["malformed-object"] * 2
    assert (cluster.quotas, cluster.limit_ranges) == ((), ())


def test_a_limit_that_the_container_states_is_not_that_of_the_limit_range():
    """The readers say that a stated limit is below the request."""
    resources = {"requests": {"memory": "4Gi"}, "limits": {"memory": "2Gi"}}
    run = ruled(limit_range(default={"memory": "1Gi"}), resources=resources)
    assert noticed(run) == ["request-above-limit"]


def test_pods_that_a_step_makes_are_not_judged_and_that_is_said():
    job = "{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {containers: [{name: a}]}}}}"
    template = {"name": "work", "resource": {"action": "create", "manifest": job}}
    run = replace(read([dag(task("a")), template]), namespace="team")
    ruled_run = with_namespace_rules(run, read_dump([NODE, quota(cpu="1")], name="dump"))
    (notice,) = [each for each in ruled_run.notices if each.code == "quota-scope"]
    assert (notice.step, "of team are not used for its workers" in notice.message) == ("a", True)


def with_claims(*objects: Any, sizes: Any = (), made: Any = None) -> Any:
    """A run that makes claims of these sizes before it starts, and one in a step."""
    claims = [
        RunClaim(f"c{number}", is_workspace=True, usage=claim_usage(size, "fast"))
        for number, size in enumerate(sizes)
    ]
    if made:
        claims.append(RunClaim("made", created_by="t0", usage=claim_usage(made, "")))
    run = replace(ruled(), namespace="team", claims=tuple(claims))
    return with_namespace_rules(run, read_dump([NODE, *objects], name="dump"))


@pytest.mark.parametrize(
    ("hard", "used", "sizes", "made", "codes"),
    [
        ({"persistentvolumeclaims": "0"}, {}, ["1Gi"], None, ["quota"]),
        ({"count/persistentvolumeclaims": "1"}, {}, ["1Gi", "1Gi"], None, ["quota"]),
        ({"persistentvolumeclaims": "1"}, {}, [], "1Gi", []),
        ({"persistentvolumeclaims": "1"}, {}, ["1Gi"], "1Gi", ["quota"]),
        ({"requests.storage": "5Gi"}, {}, ["10Gi"], None, ["quota"]),
        ({"requests.storage": "5Gi"}, {}, ["{{x}}"], None, []),
        ({"requests.storage": "5Gi"}, {"requests.storage": "4Gi"}, [], "2Gi", ["quota-room"]),
        ({"fast.storageclass.storage.k8s.io/requests.storage": 1}, {}, ["1Gi"], None, ["quota"]),
        ({"slow.storageclass.storage.k8s.io/requests.storage": 1}, {}, ["1Gi"], None, []),
    ],
)
def test_quotas_of_claims_refuse_those_that_a_run_makes(hard, used, sizes, made, codes):
    rules = quota(used=used)
    rules["spec"]["hard"] = hard
    run = with_claims(rules, sizes=sizes, made=made)
    assert noticed(run) == codes
    assert [notice.step for notice in run.notices] == ["t0" if made else ""] * len(codes)


def test_a_run_whose_claims_are_refused_never_starts():
    run = with_claims(quota(requests_storage="5Gi"), sizes=["10Gi"])
    assert (
        "requested requests.storage 10Gi, limited requests.storage 5Gi: Argo starts the run only"
        " when it can make its claims"
    ) in sentences(run)
    made = with_claims(quota(requests_storage="5Gi"), made="10Gi")
    assert "KFP's driver cannot make the claim, and fails" in sentences(made)
    only_scoped = with_claims(quota(["BestEffort"], requests_storage="5Gi"), sizes=["10Gi"])
    assert noticed(only_scoped) == ["quota-scope"]


def test_room_counts_for_the_steps_that_take_from_it_and_are_not_refused():
    """A step without requests is refused, and one without GPUs does not wait for them."""
    gpu = {"limits": {"nvidia.com/gpu": 1, "cpu": 1}}
    amounts = {"g": gpu, "c": {"requests": {"cpu": 1}}, "d": {"requests": {"cpu": 1}}, "none": {}}
    works = [{"name": name, "container": {"resources": each}} for name, each in amounts.items()]
    tasks = dag(*({"name": name, "template": name} for name in amounts))
    run = replace(read([tasks, *works]), namespace="team")

    def notices(**rules: Any) -> Any:
        cluster = read_dump([NODE, quota(**rules)], name="dump")
        return with_namespace_rules(run, cluster).notices

    no_room, *_ = notices(used={"requests.nvidia.com/gpu": 1}, **{"requests.nvidia.com/gpu": 1})
    assert "0 of requests.nvidia.com/gpu 1 left, so g cannot start" in no_room.message
    refused, few = notices(requests_cpu="2")
    assert (refused.code, refused.step) == ("quota", "none")
    assert "so at most 2 of 3 steps (c, d, g) run at once" in few.message
