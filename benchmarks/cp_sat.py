"""Optimal makespans by CP-SAT, as a program of its own: a case a line in, its optimum a line out.

`python -m benchmarks.cp_sat < cases.jsonl`. A program, because ortools and highspy bring shared
libraries of one name and should not meet in one process. What it can model: optional intervals, one
for every node that may take a step; room on each node; lags that depend on the two nodes. All
numbers are integers.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.command import BenchmarkError
from benchmarks.processes import run_apart


def optima(cases: Sequence[dict[str, Any]]) -> list[int]:
    """Return the least makespan of each case, from a process of its own.

    Args:
        cases: cases in the form that `optimum` takes.

    Raises:
        BenchmarkError: the solver is not installed, or does not prove one of them.
    """
    given = "".join(f"{json.dumps(case)}\n" for case in cases)
    what = "CP-SAT (ortools, which `make setup` installs)"
    text = run_apart(what, ["benchmarks.cp_sat"], given=given)
    return [int(line) for line in text.split()]


def optimum(case: dict[str, Any]) -> int:
    """Return the least makespan of one case.

    Args:
        case: `capacities` [N][R]; `steps`, each with `requests` [R], `seconds` [N] (null where the
            node does not take it) and `after` [[step, lag on another node], ...].

    Raises:
        BenchmarkError: it is not proven.
    """
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    status = solver.solve(_Model(case, cp_model.CpModel()).built())
    if status != cp_model.OPTIMAL:
        raise BenchmarkError(f"no optimum is proven: {solver.status_name(status)}")
    return round(solver.objective_value)


class _Model:
    def __init__(self, case: dict[str, Any], model: Any) -> None:
        self.model, self.steps, self.capacities = model, case["steps"], case["capacities"]
        self.horizon = sum(
            max(seconds for seconds in step["seconds"] if seconds is not None)
            + sum(lag for _, lag in step["after"])
            for step in self.steps
        )
        count = range(len(self.steps))
        self.starts = [model.new_int_var(0, self.horizon, f"start {index}") for index in count]
        self.ends = [model.new_int_var(0, self.horizon, f"end {index}") for index in count]
        self.here: list[dict[int, Any]] = [{} for _ in count]
        self.intervals: list[dict[int, Any]] = [{} for _ in self.capacities]

    def built(self) -> Any:
        """Return the whole model."""
        for index in range(len(self.steps)):
            self._one_node(index)
        for node, room in enumerate(self.capacities):
            members = self.intervals[node]
            for resource, amount in enumerate(room):
                asked = [self.steps[index]["requests"][resource] for index in members]
                self.model.add_cumulative(members.values(), asked, amount)
        for index, step in enumerate(self.steps):
            for before, lag in step["after"]:
                self._wait(index, before, lag)
        makespan = self.model.new_int_var(0, self.horizon, "makespan")
        self.model.add_max_equality(makespan, self.ends)
        self.model.minimize(makespan)
        return self.model

    def _one_node(self, index: int) -> None:
        for node, seconds in enumerate(self.steps[index]["seconds"]):
            if seconds is None:
                continue
            literal = self.here[index][node] = self.model.new_bool_var(f"{index} on {node}")
            self.intervals[node][index] = self.model.new_optional_interval_var(
                self.starts[index], seconds, self.ends[index], literal, f"run {index} on {node}"
            )
        self.model.add_exactly_one(self.here[index].values())

    def _wait(self, index: int, before: int, lag: int) -> None:
        self.model.add(self.starts[index] >= self.ends[before])
        for node, literal in self.here[index].items():
            for other, its_literal in self.here[before].items():
                if node != other:
                    late = self.model.add(self.starts[index] >= self.ends[before] + lag)
                    late.only_enforce_if(literal, its_literal)


if __name__ == "__main__":
    for line in sys.stdin:
        print(optimum(json.loads(line)), flush=True)
