"""Volume claims: existing ones, those the run makes, the workspace; followed to the steps."""

import pytest

from kfp_placement_engine.model.run_graph import RunClaim
from tests.support.packages import (
    a_dag,
    a_loop,
    a_package,
    a_task,
    constant,
    input_of_dag,
    inputs,
    notice_codes,
    output_of,
    told_steps,
)

MAKER = {"make": {"container": {"image": "argostub/createpvc"}}}


ONE = {"persistentvolumeclaims": 1}
"""Amounts that a quota counts for a claim that states no size."""

OF_1_GIB = ONE | {"requests.storage": 2**30}


def mounting(*sources):
    """Kubernetes config of `work` that mounts claims given in KFP's forms."""
    mounts = [{"mountPath": "/data", "pvcNameParameter": source} for source in sources]
    return {"exec-work": {"pvcMount": mounts}}


def with_maker(tasks, **options):
    """A package in which the component `make` makes a claim."""
    return a_package(tasks, executors=MAKER | options.pop("executors", {}), **options)


def a_workspace(**settings):
    """The document that gives a pipeline a workspace."""
    config = {"workspace": {"size": "1Gi", **settings}}
    return {"platforms": {"kubernetes": {"pipelineConfig": config}}}


def uses(graph):
    claim_users: dict[str, list[str]] = {}
    for step in graph.steps:
        for claim in step.claims:
            claim_users.setdefault(claim, []).append(step.name)
    return claim_users


@pytest.mark.parametrize(
    "mount",
    [
        {"pvcNameParameter": constant("data")},
        {"pvcNameParameter": {"componentInputParameter": "claim"}},
        {"constant": "data"},
        {"componentInputParameter": "claim"},
    ],
)
def test_existing_claims_are_named_in_every_form(read, mount):
    """The forms of today and the deprecated ones."""
    documents = a_package(
        parameters={"claim": {"parameterType": "STRING", "defaultValue": "data"}},
        kubernetes={"exec-work": {"pvcMount": [{"mountPath": "/data", **mount}]}},
    )
    graph = read(documents)
    assert uses(graph) == {"data": ["work"]}
    assert graph.claims == (RunClaim("data"),)


@pytest.mark.parametrize(
    "form", [{"pvcNameParameter": output_of("make", "name")}, output_of("make", "name")]
)
def test_a_claim_made_by_the_run_has_its_maker_and_modes(read, form):
    access = inputs(access_modes=["ReadWriteMany"], pvc_name_suffix="-x")
    documents = with_maker(
        {"make": a_task("make", inputs=access), "work": a_task(after=["make"])},
        kubernetes={"exec-work": {"pvcMount": [form]}},
    )
    graph = read(documents)
    assert uses(graph) == {"make": ["work"]}
    assert graph.claims == (RunClaim("make", ("ReadWriteMany",), created_by="make", usage=ONE),)


def test_size_and_class_of_a_claim_made_by_the_run_count_for_quotas(read):
    given = inputs(access_modes=["ReadWriteMany"], size="5Gi", storage_class_name="fast")
    (claim,) = read(with_maker({"make": a_task("make", inputs=given)})).claims
    amounts = ONE | {"requests.storage": 5 * 2**30}
    of_class = {f"fast.storageclass.storage.k8s.io/{name}": amounts[name] for name in amounts}
    assert claim.usage == amounts | of_class


def test_it_is_followed_into_loops_and_back_from_nested_pipelines(read):
    """Made in a nested pipeline, mounted in a loop of another."""
    access = inputs(access_modes=input_of_dag("modes"))
    maker = a_dag({"make": a_task("make", inputs=access)})
    source = {"producerSubtask": "make", "outputParameterKey": "name"}
    maker["dag"]["outputs"] = {"parameters": {"claim": {"valueFromParameter": source}}}
    user = a_dag({"work": a_task()})
    modes = inputs(modes=["ReadWriteOnce"])
    tasks = {
        "maker": a_task("maker", inputs=modes),
        "loop": a_loop("user", [1, 2], inputs=inputs(volume=output_of("maker", "claim"))),
    }
    documents = with_maker(
        tasks,
        components={"maker": maker, "user": user},
        kubernetes=mounting(input_of_dag("volume")),
    )
    graph = read(documents)
    assert uses(graph) == {"maker.make": ["loop[0].work", "loop[1].work"]}
    assert graph.claims == (
        RunClaim("maker.make", ("ReadWriteOnce",), created_by="maker.make", usage=ONE),
    )


def test_each_iteration_makes_its_own_claim(read):
    tasks = {"make": a_task("make"), "work": a_task(after=["make"])}
    documents = with_maker(
        {"loop": a_loop("body", [1, 2])},
        components={"body": a_dag(tasks)},
        kubernetes=mounting(output_of("make", "name")),
    )
    graph = read(documents)
    assert uses(graph) == {"loop[0].make": ["loop[0].work"], "loop[1].make": ["loop[1].work"]}


def test_a_claim_made_under_a_fixed_name_is_that_claim(read):
    """Whether a step mounts it by the maker's output or by its name."""
    access = inputs(access_modes=["ReadWriteOnce"], pvc_name="scratch")
    documents = with_maker(
        {"make": a_task("make", inputs=access), "work": a_task(after=["make"])},
        kubernetes=mounting(output_of("make", "name"), constant("scratch")),
    )
    graph = read(documents)
    assert uses(graph) == {"scratch": ["work"]}
    assert graph.claims == (RunClaim("scratch", ("ReadWriteOnce",), created_by="make", usage=ONE),)


def test_names_of_claims_are_unique(read):
    """An existing claim that is called like the step that makes another one."""
    tasks = {
        "make": a_task("make", after=["first"]),
        "first": a_task(),
        "last": a_task("other", after=["make"]),
    }
    other = {"pvcMount": [{"pvcNameParameter": output_of("make", "name")}]}
    documents = with_maker(
        tasks,
        executors={"other": {"container": {"image": "x"}}},
        kubernetes={**mounting(constant("make")), "exec-other": other},
    )
    graph = read(documents)
    assert uses(graph) == {"make": ["first"], "make-2": ["last"]}


def test_steps_that_mount_what_nobody_named_yet_still_share_it(read):
    """A pipeline parameter without a value is one claim, whatever it is."""
    documents = a_package(
        {"one": a_task(), "two": a_task()},
        parameters={"claim": {"parameterType": "STRING"}},
        kubernetes=mounting(input_of_dag("claim")),
    )
    graph = read(documents)
    assert uses(graph) == {"parameter claim": ["one", "two"]}
    assert notice_codes(graph) == ["missing-argument", "unknown-claim"]


def test_steps_that_mount_what_a_task_names_at_run_time_still_share_it(read):
    documents = a_package(
        {"find": a_task("finder"), "one": a_task(after=["find"]), "two": a_task(after=["find"])},
        executors={"finder": {"container": {"image": "x"}}},
        kubernetes=mounting(output_of("find")),
    )
    graph = read(documents)
    assert uses(graph) == {"Output of find": ["one", "two"]}
    assert graph.claims[0].access_modes == ()
    assert set(notice_codes(graph)) == {"unknown-claim"}


def test_the_workspace_is_mounted_where_an_input_names_it(read):
    """Also through a nested pipeline, inside of other text, and by its mount path."""
    place = "{{$.workspace_path}}"
    passed = a_dag({"work": a_task(inputs=inputs(path=input_of_dag("folder")))})
    tasks = {
        "direct": a_task(inputs=inputs(path=f"{place}/file")),
        "literal": a_task(inputs=inputs(path="/kfp-workspace/file")),
        "nested": a_task("nested", inputs=inputs(folder=place)),
        "without": a_task(inputs=inputs(path="/tmp")),
    }
    documents = a_package(tasks, components={"nested": passed})
    modes = {"pvcSpecPatch": {"accessModes": ["ReadWriteMany"]}}
    documents.append(a_workspace(kubernetes=modes))
    graph = read(documents)
    assert uses(graph) == {"kfp-workspace": ["direct", "literal", "nested.work"]}
    assert graph.claims == (
        RunClaim("kfp-workspace", ("ReadWriteMany",), is_workspace=True, usage=OF_1_GIB),
    )


def test_without_a_workspace_nothing_is_mounted(read):
    tasks = {"work": a_task(inputs=inputs(path="{{$.workspace_path}}"))}
    graph = read(a_package(tasks))
    assert graph.claims == ()
    assert uses(graph) == {}


def test_a_claim_may_be_named_before_it_is_made(read):
    """A step that mounts it by name without waiting for its maker."""
    access = inputs(access_modes=["ReadWriteOnce"], pvc_name="scratch")
    documents = with_maker(
        {"early": a_task(), "make": a_task("make", inputs=access)},
        kubernetes=mounting(constant("scratch")),
    )
    graph = read(documents)
    assert graph.claims == (RunClaim("scratch", ("ReadWriteOnce",), created_by="make", usage=ONE),)
    assert uses(graph) == {"scratch": ["early"]}


@pytest.mark.parametrize("name", ["", None])
def test_no_name_is_no_claim(read, name):
    documents = a_package(
        parameters={"claim": {"parameterType": "STRING", "isOptional": True, "defaultValue": name}},
        kubernetes=mounting(input_of_dag("claim")),
    )
    assert read(documents).claims == ()


def test_a_claim_that_nothing_names_is_said(read):
    graph = read(a_package(kubernetes=mounting(input_of_dag("gone"))))
    assert graph.claims == ()
    assert told_steps(graph) == [("unknown-claim", "work")]


def test_readers_of_what_an_importer_downloads_mount_the_workspace(read):
    """The importer fills it; the reader gets a path in it."""
    source = {"taskOutputArtifact": {"producerTask": "bring", "outputArtifactKey": "artifact"}}
    documents = a_package(
        {"bring": a_task("bring"), "use": a_task(inputs={"artifacts": {"x": source}})},
        executors={"bring": {"importer": {"downloadToWorkspace": True}}},
    )
    documents.append(a_workspace())
    graph = read(documents)
    assert uses(graph) == {"kfp-workspace": ["bring", "use"]}
    assert graph.claims == (RunClaim("kfp-workspace", is_workspace=True, usage=OF_1_GIB),)
