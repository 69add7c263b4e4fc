"""Figures that the README claims are those of the sample, which a test of the sample computes."""

import re

from tests.support.checkout import ROOT

README = (ROOT / "README.md").read_text("utf-8")
SAMPLE = (ROOT / "samples/04_unequal_steps/README.md").read_text("utf-8")


def test_the_figures_of_the_lead_case_are_those_of_the_sample():
    claims = README[: README.index("\n## Words\n")]
    figures = set(re.findall(r"\d+m\d+s|[\d.]+%", claims))
    assert {"40m38s", "29m2s", "28.5%"} <= figures
    assert [figure for figure in sorted(figures) if figure not in SAMPLE] == []


def test_when_planning_does_not_pay_is_said_before_how_to_install():
    assert README.index("**When planning does not pay.**") < README.index("pip install")
