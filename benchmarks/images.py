"""Effect of image pulls on plans, for the packages of KFP's own tests.

`python -m benchmarks.images --help`. The packages are those that the data set `kfp-2.17.0` holds;
each is planned on five idle nodes that hold no image, once as if images took no time and once with
the sizes that a plan assumes.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, geometric_mean

from benchmarks.command import DATA_HELP, Echo, add_output, exit_code_of, parser_of, show
from benchmarks.data import data_folder
from benchmarks.tables import Page, Table, machine, percent
from kfp_placement.cli.output import check_target
from kfp_placement_engine import Cluster, Node, RunGraph, plan_run, read_run_file
from kfp_placement_engine.exceptions import InputNotFoundError
from kfp_placement_engine.model.node_rules.images import canonical
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.plans.plan import Plan

FOLDER = Path("kfp-2.17.0", "pipelines")
NODES = 5
GENERATIONS = 100
SEED = 0
_ROOM = {"cpu": 8000, "memory": 32 * 2**30, "pods": 110, "nvidia.com/gpu": 1}
_SAME = 1e-9


@dataclass(frozen=True)
class Planned:
    """One way to plan a package.

    Attributes:
        makespan_seconds: makespan of the plan.
        bound_seconds: lower bound of any plan's makespan.
        gain: gain over the default scheduler, as a share of its makespan.
        nodes: nodes of the steps that have one.
        exact: every assignment was tried, or the bound is reached.
    """

    makespan_seconds: float
    bound_seconds: float
    gain: float
    nodes: tuple[str, ...]
    exact: bool

    @property
    def is_possible(self) -> bool:
        """True if the plan is not shorter than its bound."""
        return self.makespan_seconds >= self.bound_seconds


@dataclass(frozen=True)
class Outcome:
    """One package.

    Attributes:
        name: name of its file.
        steps: number of steps.
        images: number of images that its steps use.
        free: planned as if images took no time.
        pulled: planned with the sizes that are assumed.
    """

    name: str
    steps: int
    images: int
    free: Planned
    pulled: Planned

    @property
    def longer(self) -> float:
        """The time that pulls add to the run, as a share."""
        return self.pulled.makespan_seconds / self.free.makespan_seconds - 1

    @property
    def nodes_before(self) -> int:
        """Number of nodes that are used without pulls."""
        return len(set(self.free.nodes))

    @property
    def nodes_after(self) -> int:
        """Number of nodes that are used with pulls."""
        return len(set(self.pulled.nodes))

    @property
    def elsewhere(self) -> bool:
        """True if pulls change which steps share a node; names of equal nodes do not count."""
        return _renamed(self.free.nodes) != _renamed(self.pulled.nodes)


def _renamed(nodes: Sequence[str]) -> list[int]:
    """Nodes numbered in the order in which steps name them."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(node, len(numbers)) for node in nodes]


def packages(data: Path | None = None) -> list[Path]:
    """Return the packages by name.

    Raises:
        InputNotFoundError: there are none.
    """
    folder = data_folder(data)
    inside = folder / FOLDER if (folder / FOLDER).is_dir() else folder
    files = sorted(inside.glob("*.yaml"))
    if not files:
        raise InputNotFoundError(f"{inside}: holds no pipeline packages (*.yaml)")
    return files


def measure(path: Path) -> Outcome:
    """Plan one package both ways."""
    run = read_run_file(path)
    return Outcome(
        name=path.stem,
        steps=len(run.steps),
        images=len({canonical(step.image) for step in run.steps if step.image}),
        free=_planned(run, Assumptions(image_bytes=0)),
        pulled=_planned(run, Assumptions()),
    )


def _planned(run: RunGraph, assumptions: Assumptions) -> Planned:
    cluster = Cluster(tuple(Node(f"node-{number + 1}", _ROOM) for number in range(NODES)))
    options = PlanOptions(
        generations=GENERATIONS, seed=SEED, compare=("kube-default",), assumptions=assumptions
    )
    plan = plan_run(run, cluster, options)
    makespan, default = plan.figures.makespan_seconds, plan.comparison.baselines["kube-default"]
    return Planned(
        makespan_seconds=makespan,
        bound_seconds=plan.comparison.lower_bound.seconds,
        gain=1 - makespan / default.makespan_seconds,
        nodes=tuple(step.node or "" for step in plan.steps),
        exact=_is_best(plan),
    )


def _is_best(plan: Plan) -> bool:
    return (
        plan.search.exact
        or plan.figures.makespan_seconds <= plan.comparison.lower_bound.seconds * (1 + _SAME)
    )


def parts_of(outcomes: Sequence[Outcome]) -> list[Table | Sequence[str]]:
    """Return the page: the method, the sums, and one row for each package."""
    rows = [
        [
            each.name,
            str(each.steps),
            str(each.images),
            f"{each.free.makespan_seconds:.1f}",
            f"{each.pulled.makespan_seconds:.1f}",
            percent(each.longer),
            f"{each.pulled.bound_seconds:.1f}",
            str(each.nodes_before),
            str(each.nodes_after),
            "yes" if each.elsewhere else "",
            percent(each.pulled.gain),
        ]
        for each in outcomes
    ]
    headings = [
        "package", "steps", "images", "free (s)", "pulled (s)", "longer (%)", "bound (s)",
        "nodes, free", "nodes, pulled", "steps elsewhere", "gain over default (%)",
    ]  # fmt: skip
    return [_about(), _summary(outcomes), Table("Packages", headings, rows)]


def _about() -> list[str]:
    return [
        f"{machine()}. {NODES} idle nodes of 8 CPU, 32Gi and one GPU, which hold no image; 60 s for"
        " every step without a",
        f"run time, 50 MB/s for pulls. Seed {SEED}, {GENERATIONS} generations, dispatch ready."
        " `free`: images take no time, as before;",
        "`pulled`: a common image has its usual size, any other 400Mi. `steps elsewhere`: not the"
        " same steps share",
        "nodes as before; nodes are equal, so their names do not count.",
    ]


def _summary(outcomes: Sequence[Outcome]) -> list[str]:
    count = len(outcomes)
    longer = geometric_mean([1 + each.longer for each in outcomes]) - 1
    best = [sum(way.exact for way in ways) for ways in zip(*map(_ways, outcomes), strict=True)]
    gains = [fmean(way.gain for way in ways) for ways in zip(*map(_ways, outcomes), strict=True)]
    elsewhere = sum(each.elsewhere for each in outcomes)
    return [
        f"- Makespans of the {count} packages: {percent(longer)}% longer on average (geometric"
        f" mean), {percent(max(each.longer for each in outcomes))}% at most.",
        f"- Assignments differ in {elsewhere} packages; {sum(e.nodes_before for e in outcomes)}"
        f" nodes used before, {sum(e.nodes_after for e in outcomes)} after, summed over packages.",
        f"- Mean gain over the default scheduler: {percent(gains[0])}% before,"
        f" {percent(gains[1])}% after.",
        f"- Best possible, by trying all or by the bound: {best[0]} before, {best[1]} after.",
    ]


def _ways(outcome: Outcome) -> tuple[Planned, Planned]:
    return outcome.free, outcome.pulled


def main(
    echo: Echo,
    *,
    data: Path | None = None,
    form: str = "table",
    output: Path | None = None,
    files: Sequence[str] = (),
    progress: Callable[[str], None] = lambda text: None,
) -> int:
    """Measure and print the tables.

    Args:
        echo: function that prints a line.
        data: the data folder, or that of the packages; None looks for it.
        form: one of `FORMATS`.
        output: file for the tables as Markdown, beside printing them; None = no file.
        files: names (without `.yaml`) of the only packages to take; none = all.
        progress: callback for the progress of the benchmark.

    Returns:
        The exit code: 1 if a plan beats its bound, else 0.

    Raises:
        InputNotFoundError: no packages are there.
        RunError: the output cannot be written.
    """
    outcomes = []
    for path in packages(data):
        if not files or path.stem in files:
            progress(path.stem)
            outcomes.append(measure(path))
    figures = {"machine": machine(), "outcomes": [asdict(each) for each in outcomes]}
    page = Page("Images to pull", parts_of(outcomes), figures)
    show(page, echo, form, output)
    return 0 if all(way.is_possible for each in outcomes for way in _ways(each)) else 1


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "images",
        "Packages of KFP's own tests, planned without and with images to pull.",
        examples=["", "--files pipeline_with_loops", "--data path/to/data -o json"],
        exit_codes="0 done, 1 a plan beats its bound, 3 no data.",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help=f"the data folder, or that of the packages {DATA_HELP}",
    )
    parser.add_argument(
        "--files", nargs="*", default=(), metavar="NAME", help="the only packages to take"
    )
    add_output(parser)
    return parser


def command(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m benchmarks.images` and return the exit code."""
    asked = _parser().parse_args(arguments)

    def measured() -> int:
        check_target(asked.output)
        return main(
            print,
            data=asked.data,
            form=asked.form,
            output=asked.output,
            files=asked.files,
            progress=lambda text: print(text, file=sys.stderr),
        )

    return exit_code_of(measured)


if __name__ == "__main__":
    raise SystemExit(command())
