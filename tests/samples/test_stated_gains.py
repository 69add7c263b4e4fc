"""What each sample's page says of the gain on its clusters is what planning gives."""

import re

import pytest

from kfp_placement import preview
from kfp_placement_engine.views.plans.comparison import makespan
from tests.support.samples import SAMPLES

ROW = re.compile(r"^\| \[(\S+)\]\(\1\) \| (\S+) \| (\S+) \| (.+) \|$", re.MULTILINE)
STATED = [
    (page.parent.name, *row)
    for page in sorted(SAMPLES.glob("*/README.md"))
    for row in ROW.findall(page.read_text("utf-8"))
]


@pytest.mark.parametrize(("sample", "cluster", "default", "plan", "verdict"), STATED)
def test_the_gain_is_as_stated(sample, cluster, default, plan, verdict):
    folder = SAMPLES / sample
    made = preview(
        folder / "pipeline.yaml", folder / cluster, budget="500ms", compare=["kube-default"]
    ).plan
    baseline = made.comparison.baselines["kube-default"]
    assert (default, plan) == (makespan(baseline), makespan(made.figures))
    change = made.figures.makespan_seconds / baseline.makespan_seconds - 1
    word = "shorter" if change < 0 else "longer"
    assert verdict.startswith("equal" if abs(change) < 0.0005 else f"{abs(change):.1%} {word}")


def test_every_cluster_of_a_sample_is_stated():
    clusters = {
        (path.parent.name, path.name)
        for path in SAMPLES.glob("*/*.yaml")
        if "kind: Cluster" in path.read_text("utf-8")
    }
    assert {(sample, cluster) for sample, cluster, *_ in STATED} == clusters
