from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kfp_placement.cli import cli
from kfp_placement_engine.plans.plan import Plan
from tests.support import recording
from tests.support.plans import taxi_plan

SAMPLE = Path(__file__).parents[2] / "kfp_placement" / "demo"
RUN = str(SAMPLE / "taxi-home-edge.yaml")
CLUSTER = str(SAMPLE / "cluster.yaml")


@dataclass
class Planner:
    """Stands in for the planner: answers with a plan made up, remembers what it was asked."""

    plan: Plan = field(default_factory=taxi_plan)
    calls: list[Any] = field(default_factory=list)

    def __call__(self, graph, cluster, options=None, progress=None):
        self.calls.append((graph, cluster, options))
        if progress is not None:
            progress(0.5, "searching, generation 1")
        return self.plan

    @property
    def graph(self):
        return self.calls[-1][0]

    @property
    def cluster(self):
        return self.calls[-1][1]

    @property
    def options(self):
        return self.calls[-1][2]


@pytest.fixture
def planner(monkeypatch):
    stand_in = Planner()
    monkeypatch.setattr("kfp_placement.planning.plan_run", stand_in)
    return stand_in


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for variable in ("NO_COLOR", "KFP_PLACEMENT_DATA"):
        monkeypatch.delenv(variable, raising=False)

    def invoke(*args: object, stdin: bytes | str | None = None) -> Result:
        found = CliRunner().invoke(cli, [str(arg) for arg in args], input=stdin)
        said = [recording.plain(text, tmp_path) for text in (found.stdout, found.stderr)]
        recording.keep("command", code=found.exit_code, stdout=said[0], stderr=said[1])
        return found

    return invoke


@pytest.fixture
def plan(run):
    """`plan` of the sample on its cluster, with more options."""

    def invoke(*options: object, stdin: bytes | str | None = None) -> Result:
        return run("plan", RUN, "--cluster", CLUSTER, *options, stdin=stdin)

    return invoke
