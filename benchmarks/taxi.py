"""`python -m benchmarks.taxi`: what longer trainings of the taxi sample cost and bring.

The sample's components are called one after another in this process, each with one thread. With
the excerpt of public trips where it lies, else with trips that are made up.
"""

import argparse
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.command import DATA_HELP, BenchmarkError, add_output, exit_code_of, parser_of, show
from benchmarks.data import data_folder
from benchmarks.tables import Page, Table, machine
from kfp_placement_engine.exceptions import InputNotFoundError

COMPONENTS = Path(__file__).resolve().parents[1] / "components"
EXCERPT = Path("chicago-taxi")
MADE_UP = "made-up trips"


@dataclass(frozen=True)
class Training:
    """Training of the model.

    Attributes:
        name: name for people.
        rounds: number of trees.
        learning_rate: share of its correction that each tree makes.
    """

    name: str
    rounds: int
    learning_rate: float


TRAININGS = (
    Training("short", 500, 0.01),
    Training("light", 10_000, 0.01),
    Training("heavy", 100_000, 0.001),
)
"""The thesis' light and heavy training, and the one that the sample does unless told otherwise."""


@dataclass(frozen=True)
class Trips:
    """The rows to learn from and those to predict; "" = made up."""

    name: str
    training_source: str = ""
    test_source: str = ""


@dataclass(frozen=True)
class Outcome:
    """Result of one training.

    Attributes:
        training_rmse, test_rmse: root of the mean squared error, in dollars.
        mean_rmse: error where the mean of the test rows' tips is predicted everywhere.
        training_cpu_seconds, predict_cpu_seconds: CPU times of whole components.
        model_bytes: size of the model.
    """

    training: Training
    training_rmse: float
    test_rmse: float
    mean_rmse: float
    training_cpu_seconds: float
    predict_cpu_seconds: float
    model_bytes: int


@dataclass
class _Artifact:
    """Stand-in for an artifact of KFP that a component reads or writes."""

    path: str
    metrics: dict[str, float] = field(default_factory=dict)

    def log_metric(self, name: str, value: float) -> None:
        """Keep a metric."""
        self.metrics[name] = value


def component_function(name: str) -> Callable[..., Any]:
    """Return the function of a component in `components/`."""
    file = COMPONENTS / name / "component.py"
    spec = importlib.util.spec_from_file_location(f"component_{name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., Any] = getattr(module, name).python_func
    return function


def find_trips(data: Path | None) -> Trips:
    """Return the excerpt of public trips, or None without one.

    Raises:
        InputNotFoundError: the folder that was named has no trips.
    """
    try:
        folder = data_folder(data) / EXCERPT
    except InputNotFoundError:
        if data is not None:
            raise
        return Trips(MADE_UP)
    files = [folder / "taxi_train_2000.csv", folder / "taxi_test_1000.csv"]
    if all(file.is_file() for file in files):
        return Trips("public trips", *map(str, files))
    if data is not None:
        raise InputNotFoundError(f"{folder}: no such folder of taxi trips")
    return Trips(MADE_UP)


def measure(trips: Trips, training: Training) -> Outcome:
    """Fetch, train, predict and evaluate once."""
    with tempfile.TemporaryDirectory() as folder:

        def artifact(name: str) -> _Artifact:
            return _Artifact(str(Path(folder, name)))

        fetch = component_function("fetch")
        rows, tests = artifact("rows"), artifact("tests")
        fetch(table=rows, source=trips.training_source, rows=2000, seed=1)
        fetch(table=tests, source=trips.test_source, rows=1000, seed=2)
        model, trained = artifact("model"), artifact("trained")
        training_seconds = _cpu_seconds(
            component_function("train"),
            table=rows,
            model=model,
            metrics=trained,
            rounds=training.rounds,
            learning_rate=training.learning_rate,
        )
        predicted, compared = artifact("predicted"), artifact("compared")
        predict_seconds = _cpu_seconds(
            component_function("predict"), model=model, table=tests, predictions=predicted
        )
        error = component_function("evaluate")(truth=tests, predictions=predicted, metrics=compared)
    return Outcome(
        training,
        training_rmse=trained.metrics["training_rmse"],
        test_rmse=error,
        mean_rmse=compared.metrics["rmse_of_the_mean"],
        training_cpu_seconds=training_seconds,
        predict_cpu_seconds=predict_seconds,
        model_bytes=int(trained.metrics["model_bytes"]),
    )


def _cpu_seconds(function: Callable[..., Any], **arguments: Any) -> float:
    started = time.process_time()
    function(**arguments)
    return time.process_time() - started


def page_of(trips: Trips, outcomes: Sequence[Outcome]) -> Page:
    """Return the table."""
    rows = [
        [
            outcome.training.name,
            f"{outcome.training.rounds:,}",
            f"{outcome.training.learning_rate:g}",
            f"{outcome.training_rmse:.2f}",
            f"{outcome.test_rmse:.2f}",
            f"{outcome.training_cpu_seconds:.1f} s",
            f"{outcome.predict_cpu_seconds:.1f} s",
            f"{outcome.model_bytes / 1e6:.0f} MB",
        ]
        for outcome in outcomes
    ]
    headings = ["training", "rounds", "rate", "error on training rows", "on test rows"]
    headings += ["CPU to train", "to predict", "model"]
    mean = outcomes[0].mean_rmse
    about = [
        f"2,000 {trips.name} to learn from, 1,000 to predict; errors are roots of mean squares, in"
        f" dollars.\nThe mean tip, predicted everywhere, has an error of {mean:.2f} on the test"
        f" rows. One thread; {machine()}."
    ]
    table = Table("Longer trainings of the taxi sample", headings, rows)
    return Page("Taxi", [table, about], {"outcomes": [asdict(outcome) for outcome in outcomes]})


def main(arguments: argparse.Namespace) -> int:
    """Measure and print."""
    if importlib.util.find_spec("xgboost") is None:
        raise BenchmarkError("XGBoost is not installed: `make setup`, or pip install xgboost-cpu")
    trips = find_trips(arguments.data)
    wanted = [each for each in TRAININGS if each.name in arguments.trainings]
    outcomes = []
    for training in wanted:
        print(f"{training.name}: {training.rounds:,} rounds ...", file=sys.stderr)
        outcomes.append(measure(trips, training))
    show(page_of(trips, outcomes), print, arguments.form, arguments.output)
    return 0


def command(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = parser_of(
        "taxi",
        "Train the taxi sample's model for longer and longer: errors, times, sizes.",
        examples=["", "--trainings light", "--output benchmarks/results/taxi.md"],
        exit_codes="0 measured; 1 XGBoost is missing; 3 no such data",
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help=DATA_HELP)
    names = [each.name for each in TRAININGS]
    parser.add_argument("--trainings", nargs="+", choices=names, default=names)
    add_output(parser)
    asked = parser.parse_args(arguments)
    return exit_code_of(lambda: main(asked))


if __name__ == "__main__":
    sys.exit(command())
