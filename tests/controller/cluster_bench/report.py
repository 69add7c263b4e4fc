"""Tables of the ways to place pods."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.tables import Table, machine, percent
from tests.controller.cluster_bench.experiment_runner import Actuator, Outcome
from tests.controller.cluster_bench.scenarios import Scenario
from tests.controller.cluster_bench.simulated import Simulated


@dataclass
class Results:
    """What there is so far.

    Attributes:
        outcomes: by scenario, seed and actuator.
        simulated: by scenario and seed.
    """

    outcomes: dict[tuple[str, int, Actuator], Outcome] = field(default_factory=dict)
    simulated: dict[tuple[str, int], Simulated] = field(default_factory=dict)

    def of(self, scenario: str, actuator: Actuator) -> dict[int, Outcome]:
        """By seed."""
        return {
            seed: outcome
            for (name, seed, how), outcome in self.outcomes.items()
            if (name, how) == (scenario, actuator)
        }

    def ratio(self, scenario: str, actuator: Actuator, to: Actuator) -> float | None:
        """Geometric mean of makespans over those of another, where both succeeded."""
        ours, theirs = self.of(scenario, actuator), self.of(scenario, to)
        logarithms = [
            math.log(ours[seed].makespan / theirs[seed].makespan)
            for seed in ours.keys() & theirs.keys()
            if not ours[seed].failed_runs and not theirs[seed].failed_runs
        ]
        return math.exp(statistics.mean(logarithms)) if logarithms else None


def parts_of(
    results: Results, scenarios: Sequence[Scenario], seeds: int, about: str
) -> list[Table | Sequence[str]]:
    """What was measured, where, and what the engine says of the same inputs."""
    wanted = len(scenarios) * seeds * len(Actuator)
    parts: list[Table | Sequence[str]] = [[f"{about}; {machine()}."]]
    if len(results.outcomes) < wanted:
        parts.append([f"Interrupted: {len(results.outcomes)} of {wanted} runs."])
    parts += [[f"**{each.name}**: {each.about}"] for each in scenarios]
    parts += [
        measured_table(results, scenarios),
        safety_table(results, scenarios),
        simulated_table(results, scenarios),
    ]
    return parts


def measured_table(results: Results, scenarios: Sequence[Scenario]) -> Table:
    """Makespans beside each other."""
    rows = []
    for scenario in scenarios:
        for actuator in Actuator:
            outcomes = results.of(scenario.name, actuator)
            good = [each for each in outcomes.values() if not each.failed_runs]
            rows.append(
                [
                    scenario.name,
                    str(actuator),
                    _spread([each.makespan for each in good]),
                    *(
                        _change(results.ratio(scenario.name, actuator, other))
                        for other in (Actuator.DEFAULT, Actuator.EXTENDER)
                    ),
                    _spread([each.waiting for each in good]),
                    _mean(ms for each in good for ms in each.latencies_ms),
                    _mean(each.planned for each in good if each.planned is not None),
                    _mean(
                        (each.makespan / each.planned for each in good if each.planned is not None),
                        "{:.2f}",
                    ),
                ]
            )
    headings = [
        "cluster",
        "actuator",
        "makespan, s",
        "than default, %",
        "than extender, %",
        "waiting, s",
        "round trip, ms",
        "planned, s",
        "actual/planned",
    ]
    return Table("Measured: mean and standard deviation over the seeds", headings, rows, words=2)


def safety_table(results: Results, scenarios: Sequence[Scenario]) -> Table:
    """What went wrong, or otherwise than planned: sums over the seeds."""
    counted: tuple[Callable[[Outcome], int], ...] = (
        lambda each: each.executors,
        lambda each: each.off_plan,
        lambda each: len(each.rejected),
        lambda each: each.failed_runs,
    )
    rows = [
        [scenario.name, str(actuator)]
        + [str(sum(map(count, results.of(scenario.name, actuator).values()))) for count in counted]
        for scenario in scenarios
        for actuator in Actuator
    ]
    headings = ["cluster", "actuator", "pods of steps", "off plan", "rejected", "runs failed"]
    return Table("What went otherwise than planned: sums", headings, rows, words=2)


def simulated_table(results: Results, scenarios: Sequence[Scenario]) -> Table:
    """Means over the seeds."""
    chosen: tuple[Callable[[Simulated], float], ...] = (
        lambda each: each.kube_default,
        lambda each: each.heft,
        lambda each: each.ready,
        lambda each: each.ordered,
        lambda each: each.bound,
    )
    rows = []
    for scenario in scenarios:
        outcomes = [each for (name, _), each in results.simulated.items() if name == scenario.name]
        rows.append([scenario.name, *(_mean(map(take, outcomes)) for take in chosen)])
    headings = ["cluster", "kube-default", "HEFT", "plan, ready", "plan, ordered", "lower bound"]
    return Table("Simulated from the same inputs: makespans, s, means", headings, rows)


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "-"
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.1f} ± {deviation:.1f}"


def _mean(values: Iterable[float | None], form: str = "{:.1f}") -> str:
    numbers = [value for value in values if value is not None]
    return form.format(statistics.mean(numbers)) if numbers else "-"


def _change(ratio: float | None) -> str:
    return "-" if ratio is None else percent(ratio - 1)
