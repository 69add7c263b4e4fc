"""The committed pictures of the documentation are drawn by the report, from samples."""

import re
from pathlib import Path

import pytest

from kfp_placement.report.drawing import Pen, standalone
from kfp_placement.report.gantt import gantt
from kfp_placement.report.limits import REPORT
from kfp_placement.report.palette import NodeColours
from tests.samples.lead_case import lead_case
from tests.support.golden import recording

pytestmark = pytest.mark.golden

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
SAMPLE = (ROOT / "samples/04_unequal_steps/README.md").read_text("utf-8")
PICTURE = ROOT / "docs/pictures/lead-case.svg"


def test_the_picture_of_the_lead_case_is_drawn_from_its_plan():
    plan = lead_case().plan(compare=("kube-default",))
    drawing = gantt(plan, NodeColours(plan.cluster_nodes), REPORT, Pen("lead-case", tooltips=False))
    drawn = f"{standalone(drawing)}\n"
    if recording():
        PICTURE.write_text(drawn, "utf-8")
    assert PICTURE.read_text("utf-8") == drawn, "`make regenerate` draws the picture again"


def test_the_figures_of_the_readme_are_those_of_the_sample():
    """A test of the sample computes them."""
    claims = README[: README.index("\n## Words")] + README[README.index("\n## Try it") :][:1500]
    figures = set(re.findall(r"\d+m\d+s|[\d.]+%", claims)) - {"11m35s"}
    assert {"40m38s", "29m2s", "28.5%"} <= figures
    assert [figure for figure in sorted(figures) if figure not in SAMPLE] == []
