"""Stories of `demo`: the text and the plan that each sample shows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources

from kfp_placement._input_file import InputFile
from kfp_placement.clusters.reading import KnownCluster
from kfp_placement.planning import PlanAnswer, PlanRequest, planned
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.run_graph import Step
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.progress import Progress
from kfp_placement_engine.readers import read_cluster
from kfp_placement_engine.render.text import TextStyle, document_text, table_lines
from kfp_placement_engine.render.text_time_line import time_lines
from kfp_placement_engine.units.quantities import format_resource
from kfp_placement_engine.views.document import Column, Row, Table
from kfp_placement_engine.views.formatting import duration, latency
from kfp_placement_engine.views.plans.comparison import difference_text, makespan
from kfp_placement_engine.views.plans.detail import PAGE, TEXT, WITH_REASONS, Detail
from kfp_placement_engine.views.plans.time_line import plan_time_line
from kfp_placement_engine.views.plans.view import plan_view

LOCATIONS = ("HOME-EDGE", "NITLAB-EDGE", "NITOS-CLOUD")
"""Locations of the users of the taxi sample, each with a package; the first is shown in full."""

PREDICT = "predict"
"""Step of the taxi sample that goes near its users."""

_COLUMNS = 120
"""Width of the plan if stdout is not a terminal."""

_TIME_LINE_COLUMNS = 100
"""Maximal width of time lines: narrow ones are understood at a glance."""

_MARKED = """\
An author marks the steps of a pipeline in Python and compiles it with KFP as always:

"""

_UNEQUAL_MARKS = """\
    @placed(type="Training", duration="24m", cpu=3, memory="4Gi")
    @dsl.component
    def xgboost(...): ...

Here seven trainings of 3 to 24 minutes read one table, and each fills one of three workers.
KFP sorts tasks by name, so the longest, `xgboost`, is the last in line.
"""

_GATES = """\
The plan starts the longest first and holds the others back, which takes scheduling gates. Where
pods may not be held back, `kfp-placement plan --dispatch ready` shows what is left to gain.
"""

_TAXI_MARKS = """\
    @placed(type="Training", duration="20m", outputs={"model": "50Mi"}, cpu="1500m")
    @dsl.component
    def train(...): ...

    place(predict(...), type="Predict", location="HOME-EDGE", max_latency="20ms")
"""


@dataclass(frozen=True)
class Story:
    """Output of `demo` for one sample.

    Attributes:
        text: text for the terminal.
        plan: plan for the HTML report.
    """

    text: str
    plan: Plan


def unequal_steps(options: Mapping[str, object], style: TextStyle, progress: Progress) -> Story:
    """Compare the time line of the default scheduler with that of the plan."""
    cluster = read_cluster(_file("three-workers.yaml"), name="three equal workers")
    plan = _planned("unequal-steps.yaml", cluster, options, progress).plan
    default = plan.comparison.baselines["kube-default"]
    change = difference_text(plan, default)
    columns = min(style.columns or _TIME_LINE_COLUMNS, _TIME_LINE_COLUMNS)
    own, others = plan_time_line(plan, PAGE).schedules
    own = replace(own, title=f"The plan: {makespan(plan.figures)}, {change}")
    lines = time_lines((others, own), columns)
    parts = [_MARKED + _UNEQUAL_MARKS, "\n".join(lines) + "\n", _GATES, _table(plan, TEXT, style)]
    return Story("\n".join(parts), plan)


def taxi(options: Mapping[str, object], style: TextStyle, progress: Progress) -> Story:
    """Plan training in the cloud and prediction near the users, for each location of the users."""
    cluster = read_cluster(_file("cluster.yaml"), name="the thesis' cluster")
    by_location = {
        place: _planned(f"taxi-{place.lower()}.yaml", cluster, options, progress)
        for place in LOCATIONS
    }
    shown = LOCATIONS[0]
    first = by_location[shown]
    parts = [
        _MARKED + _TAXI_MARKS,
        "The marks travel with the compiled package:\n",
        _indented(
            ("STEP", "TYPE", "LOCATION", "RUN TIME", "OUTPUTS"),
            map(_mark, first.prepared.run.steps),
            style,
        ),
        f"The plan, made before the first step starts, for users at {shown}:\n",
        # The reasons are the point of this sample: unlike elsewhere, the plan always has them.
        _table(first.plan, WITH_REASONS, style),
        "Where the prediction goes when the users are elsewhere:\n",
        _by_location(by_location, style),
    ]
    return Story("\n".join(parts), first.plan)


def _planned(
    file: str, cluster: Cluster, options: Mapping[str, object], progress: Progress
) -> PlanAnswer:
    request = PlanRequest(InputFile(file, _file(file)), KnownCluster(cluster), options=options)
    return planned(request, progress)


def _file(name: str) -> bytes:
    """Read a file of the samples that ship with the package."""
    return resources.files("kfp_placement").joinpath("demo", name).read_bytes()


def _table(plan: Plan, detail: Detail, style: TextStyle) -> str:
    return document_text(plan_view(plan, detail), replace(style, columns=style.columns or _COLUMNS))


def _mark(step: Step) -> list[str]:
    outputs = [format_resource("memory", size) for size in step.output_bytes.values()]
    location = step.location
    if step.max_latency_ms is not None:
        location += f" within {latency(step.max_latency_ms)}"
    run_time = duration(step.duration_seconds)
    return [step.name, step.type, location, run_time, ", ".join(outputs)]


def _by_location(plans: Mapping[str, PlanAnswer], style: TextStyle) -> str:
    rows = []
    for location, plan_answer in plans.items():
        plan = plan_answer.plan
        step, end = plan.step(PREDICT), makespan(plan.figures)
        rows.append([location, step.node or "no node", latency(step.latency_ms), end])
    return _indented(("USERS AT", "PREDICT GOES TO", "ROUND TRIP", "MAKESPAN"), rows, style)


def _indented(titles: Sequence[str], rows: Iterable[Sequence[str]], style: TextStyle) -> str:
    table = Table("", [Column(title) for title in titles], [Row(row) for row in rows])
    return "".join(f"    {line}\n" for line in table_lines(table, style))
