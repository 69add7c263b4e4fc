"""What there is to plan, and the folder in which commands find it under short names."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

HERE = Path(__file__).parent

CLUSTERS = {name: f"clusters/{name}.yaml" for name in ("thesis", "uneven", "dump")}
"""The paper's nodes; nodes that differ in everything; what kubectl prints of a small cluster."""

OTHER_RULES = {name: f"clusters/{name}.yaml" for name in ("scoring-dump", "no-rules-dump")}
"""Clusters with a PlacementPolicy that names another type than the usual ones, or none."""

LARGE_BYTES = 150_000
"""Instances from this size on are planned with few generations."""

_SETS = (
    "kfp-2.17.0/pipelines/*.yaml",
    "kfp-2.17.0/workflows/*.yaml",
    "labelled/pipelines/*.yaml",
    "labelled/workflows/*.yaml",
    "kfp-drafts/13171/*.yaml",
    "kfp-drafts/13258/*.yaml",
    "wfinstances/*.json",
)


@dataclass(frozen=True)
class Run:
    """Something to plan.

    Attributes:
        name: of its cases.
        path: as given on the command line.
        generations: of the search.
    """

    name: str
    path: str
    generations: int


def runs() -> Iterator[Run]:
    """Every package, Workflow and instance of the data, and the samples' packages."""
    for pattern in _SETS:
        for path in sorted(Path("data").glob(pattern)):
            generations = 2 if path.stat().st_size > LARGE_BYTES else 30
            yield Run(str(path.relative_to("data").with_suffix("")), str(path), generations)
    for path in sorted(Path("tree/samples").glob("*/pipeline.yaml")):
        yield Run(f"samples/{path.parent.name}", str(path), 30)


def modules() -> Iterator[Run]:
    """Pipelines in Python.

    Not `control_flow`: KFP compiles the settings of a component that a nested pipeline uses as well
    now to the one task and now to the other. Its package is compared.
    """
    for name in ("taxi", "fan_out", "shared_volume"):
        yield Run(f"module/labelled.{name}", f"data/labelled/labelled.py:{name}", 30)
    for folder, name in (("01_first_hints", "first_hints"), ("06_taxi", "taxi")):
        yield Run(f"module/{name}", f"tree/samples/{folder}/pipeline.py:{name}", 30)
    for name in ("small", "looped", "holder.inner"):
        yield Run(f"module/made-up.{name}", f"pipelines.py:{name}", 30)


def lay_out(folder: Path, tree: Path, data: Path) -> None:
    """Make the folder in which commands run: the same names wherever the tree lies."""
    for name, target in {"tree": tree, "data": data, "clusters": HERE / "data"}.items():
        (folder / name).symlink_to(target.resolve())
    for name, text in _FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)

_OURS = "apiVersion: kfp-placement.dev/v1alpha1\nkind: Cluster\n"

_NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "one"},
    "status": {"allocatable": {"cpu": "many", "memory": "8Gi"}},
}

_FILES: dict[str, str | bytes] = {
    "durations.yaml": "train: 1h\nfetch: 45\n",
    "bad/durations.yaml": "nosuch: 5m\n",
    "scoring.py": """\
from kfp import dsl
from kfp_placement import placed, placed_pipeline

@placed(type="Scoring", location="NITLAB-EDGE", duration="20m")
@dsl.component(base_image="python:3.12")
def score(rows: int) -> int:
    return rows

@dsl.pipeline(name="scoring")
@placed_pipeline()
def scoring(rows: int = 1):
    score(rows=rows)
""",
    "raising.py": "raise ValueError('of no use')\n",
    "pipelines.py": """\
from kfp import dsl
from kfp_placement import placed, placed_pipeline

print("side effects of an import")

@placed(type="Training", duration="20m")
@dsl.component(base_image="python:3.12")
def train(rows: int) -> int:
    return rows

@dsl.pipeline(name="small")
@placed_pipeline()
def small(rows: int = 1):
    train(rows=rows)

@dsl.component(base_image="python:3.12")
def names() -> list:
    return []

@dsl.pipeline(name="looped")
@placed_pipeline()
def looped():
    with dsl.ParallelFor(names().output) as item:
        train(rows=item)

class holder:
    inner = small

number = 7
""",
    "bad/runs/empty.yaml": "",
    "bad/runs/blank.yaml": "  \n\n",
    "bad/runs/binary.yaml": bytes(range(64)),
    "bad/runs/gzip.yaml": b"\x1f\x8b\x08\x00abc",
    "bad/runs/no-yaml.yaml": "a: [1, 2",
    "bad/runs/no-run.yaml": "just: text",
    "bad/runs/list.yaml": "[1, 2, 3]",
    "bad/runs/number.yaml": "7",
    "bad/runs/no-utf8.yaml": b"name: \xff\xfe\xfa",
    "bad/runs/bomb.yaml": _BOMB,
    "bad/runs/anchor.yaml": "a: &a [*a]",
    "bad/runs/deep.yaml": "[" * 5000,
    "bad/runs/version.yaml": "apiVersion: argoproj.io/v9\nkind: Workflow\n",
    "bad/runs/kind.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
    "bad/runs/null.yaml": "null",
    "bad/runs/huge.yaml": b"a" * (16 * 2**20 + 1),
    "bad/runs/no-entry.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nspec: {}\n",
    "bad/runs/instance.json": '{"name": "x", "schemaVersion": "1.5", "workflow": {}}',
    "bad/clusters/empty.yaml": "",
    "bad/clusters/no-nodes.yaml": f"{_OURS}nodes: []\n",
    "bad/clusters/no-list.yaml": "kind: List\napiVersion: v1\nitems: 7\n",
    "bad/clusters/negative.yaml": f"{_OURS}nodes: [{{name: a, cpu: -2, memory: 1Gi}}]\n",
    "bad/clusters/absurd.yaml": f"{_OURS}nodes: [{{name: a, cpu: 1, memory: 1e99}}]\n",
    "bad/clusters/unknown-key.yaml": f"{_OURS}nodes: [{{name: a, cpus: 1, memory: 1Gi}}]\n",
    "bad/clusters/twice.yaml": f"{_OURS}nodes: [{{name: a, cpu: 1, memory: 1Gi}},"
    " {name: a, cpu: 1, memory: 1Gi}]\n",
    "bad/clusters/tiny.yaml": f"{_OURS}nodes: [{{name: a, cpu: 1, memory: 1Gi}}]\n",
    "bad/clusters/latency.yaml": f"{_OURS}nodes: [{{name: a, cpu: 8, memory: 9Gi}}]\n"
    "latencies: {HERE: {b: 2ms}}\n",
    "bad/clusters/version.yaml": "apiVersion: kfp-placement.dev/v7\nkind: Cluster\nnodes: []\n",
    "bad/clusters/bomb.yaml": _BOMB,
    "bad/clusters/node.yaml": yaml.safe_dump(_NODE),
}
