import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kfp_placement.cli import cli
from kfp_placement_engine.plans.plan import Plan
from tests.support.checkout import ROOT
from tests.support.json_schemas import assert_described
from tests.support.plans import taxi_plan

SAMPLE = ROOT / "kfp_placement" / "demo"
RUN = str(SAMPLE / "taxi-home-edge.yaml")
CLUSTER = str(SAMPLE / "cluster.yaml")


@dataclass
class Planner:
    """Stands in for the planner: answers with a plan made up, remembers what it was asked."""

    plan: Plan = field(default_factory=taxi_plan)
    error: BaseException | None = None
    calls: list[Any] = field(default_factory=list)

    def __call__(self, graph, cluster, options=None, progress=None):
        self.calls.append((graph, cluster, options))
        if self.error is not None:
            raise self.error
        if progress is not None:
            progress(0.5, "searching, generation 1")
        return self.plan

    @property
    def graph(self):
        return self.calls[-1][0]

    @property
    def steps(self):
        """The steps of the run, by name."""
        return {step.name: step for step in self.graph.steps}

    @property
    def cluster(self):
        return self.calls[-1][1]

    @property
    def options(self):
        return self.calls[-1][2]


@pytest.fixture
def planner(monkeypatch):
    stand_in = Planner()
    monkeypatch.setattr("kfp_placement.prepared_run.plan_run", stand_in)
    return stand_in


@dataclass
class CommandLine:
    """Runs commands.

    Attributes:
        first: words that every command line begins with.
        last: words that every command line ends with.
    """

    first: tuple[object, ...] = ()
    last: tuple[object, ...] = ()

    def __call__(self, *words: object, stdin: bytes | str | None = None) -> Result:
        """Run a command line with these words."""
        line = [str(word) for word in (*self.first, *words, *self.last)]
        return CliRunner().invoke(cli, line, input=stdin)

    def output(self, *words: object, stdin: bytes | str | None = None) -> str:
        """Return what a command prints that succeeds and has nothing to warn of."""
        completed = self(*words, stdin=stdin)
        assert (completed.exit_code, completed.stderr) == (0, "")
        return completed.stdout

    def message(self, code: int, *words: object, stdin: bytes | str | None = None) -> str:
        """Return what a command says that prints no result and ends with this exit code."""
        completed = self(*words, stdin=stdin)
        assert (completed.exit_code, completed.stdout) == (code, ""), completed.stderr
        return completed.stderr

    def document(self, *words: object) -> Any:
        """The JSON that a command prints that succeeds; it is as its schema says."""
        completed = self(*words, "-o", "json")
        assert completed.exit_code == 0, completed.stderr
        content = json.loads(completed.stdout)
        name = "plan" if content["kind"] == "Plan" else "runs"
        assert_described(content, name)
        return content


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for variable in ("NO_COLOR", "KFP_PLACEMENT_DATA"):
        monkeypatch.delenv(variable, raising=False)
    return CommandLine()


@pytest.fixture
def plan(run):
    """`plan` of the sample on its cluster, with more options."""
    return replace(run, first=("plan", RUN, "--cluster", CLUSTER))
