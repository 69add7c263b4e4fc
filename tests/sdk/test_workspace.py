"""A path in KFP's workspace that travels as a value: who gets it may need the same node."""

import pytest
from kfp import dsl

from kfp_placement import Cluster, Node, placed_pipeline, preview

IMAGE = "python:3.12"
CLUSTER = Cluster([Node("worker", count=3, cpu=4, memory="16Gi")])


@dsl.component(base_image=IMAGE)
def write(folder: str) -> str:
    return folder + "/table"


@dsl.component(base_image=IMAGE)
def count(folder: str) -> int:
    return 3


@dsl.component(base_image=IMAGE)
def read(path: str): ...


@dsl.component(base_image=IMAGE)
def show(number: int): ...


def pipeline(body, mode="ReadWriteOnce"):
    workspace = dsl.WorkspaceConfig(
        size="1Gi", kubernetes=dsl.KubernetesWorkspaceConfig(pvcSpecPatch={"accessModes": [mode]})
    )
    config = dsl.PipelineConfig(workspace=workspace)

    @dsl.pipeline(name="shared", pipeline_config=config)
    @placed_pipeline()
    def shared():
        body(dsl.WORKSPACE_PATH_PLACEHOLDER)

    return shared


def path_notices(body, **options):
    plan = preview(pipeline(body, **options), CLUSTER, budget="50ms", compare=())
    return [notice for notice in plan.warnings if notice.code == "workspace-path"]


def by_value(folder):
    read(path=write(folder=folder).output)


def test_a_path_that_a_step_returns_is_told(golden):
    (notice,) = path_notices(by_value)
    assert notice.step == "read"
    golden(notice.message)


def by_placeholder(folder):
    read(path=folder).after(write(folder=folder))


def number(folder):
    show(number=count(folder=folder).output)


def elsewhere(folder):
    read(path=write(folder="/tmp").output)


@pytest.mark.parametrize("body", [by_placeholder, number, elsewhere])
def test_where_the_plan_knows_there_is_nothing_to_tell(body):
    assert path_notices(body) == []


def test_a_workspace_for_several_nodes_ties_nobody():
    assert path_notices(by_value, mode="ReadWriteMany") == []


def test_a_loop_is_told_once():
    def body(folder):
        path = write(folder=folder).output
        with dsl.ParallelFor([1, 2, 3]):
            read(path=path)

    (notice,) = path_notices(body)
    assert notice.step == "for-loop-2[*].read"
