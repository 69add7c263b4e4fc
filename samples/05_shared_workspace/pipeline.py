"""Steps that share files in the run's workspace, a volume that one node at a time can mount.

The first step writes many files; three others each work on a part of them, at the same time, and
the last puts the results together. They can only overlap on one node.
"""

from kfp import compiler, dsl

from kfp_placement import place, placed_pipeline

IMAGE = "python:3.12"


@dsl.component(base_image=IMAGE)
def unpack(folder: str, files: int):
    """Write numbered files."""
    from pathlib import Path

    # In a cluster it is there; on this machine it may be new.
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number in range(files):
        Path(folder, f"{number}.txt").write_text(f"{number}\n")


@dsl.component(base_image=IMAGE)
def summarise(folder: str, part: int, parts: int):
    """Add up one part of the files."""
    from pathlib import Path

    mine = [path for path in Path(folder).glob("[0-9]*.txt") if int(path.stem) % parts == part]
    total = sum(int(path.read_text()) for path in mine)
    Path(folder, f"total-{part}.txt").write_text(f"{total}\n")


@dsl.component(base_image=IMAGE)
def combine(folder: str) -> int:
    """Add up the totals of the parts."""
    from pathlib import Path

    return sum(int(path.read_text()) for path in Path(folder).glob("total-*.txt"))


@dsl.pipeline(
    name="shared-workspace",
    description="Unpack files, work on three parts of them at once, combine the results.",
    pipeline_config=dsl.PipelineConfig(
        workspace=dsl.WorkspaceConfig(
            size="100Gi",
            kubernetes=dsl.KubernetesWorkspaceConfig(
                pvcSpecPatch={"accessModes": ["ReadWriteOnce"]}
            ),
        )
    ),
)
@placed_pipeline()
def shared_workspace(files: int = 30) -> int:
    folder = dsl.WORKSPACE_PATH_PLACEHOLDER
    unpacked = unpack(folder=folder, files=files)
    place(unpacked, type="Fetch", duration="4m", cpu=2, memory="4Gi")
    summaries = [summarise(folder=folder, part=part, parts=3) for part in range(3)]
    for task in summaries:
        task.after(unpacked)
        place(task, type="Transform", duration="10m", cpu=4, memory="8Gi")
    combined = combine(folder=folder).after(*summaries)
    return place(combined, type="Evaluate", duration="2m", cpu=1, memory="2Gi").output


if __name__ == "__main__":
    compiler.Compiler().compile(shared_workspace, "pipeline.yaml")
