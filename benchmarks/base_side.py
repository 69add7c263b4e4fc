"""The other side of `beside`: searches cases with the engine that comes first on the path.

`python -m benchmarks.base_side j30 --data path/to/data` reads a question a line, as JSON, and
writes an answer a line.
"""

import importlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import kfp_placement_engine
from benchmarks.beside import Question
from benchmarks.budget import timed_budget
from benchmarks.measuring import Benchmark, parser_for


def answer_all(benchmark: Benchmark, arguments: Sequence[str]) -> None:
    """Answer questions until the input ends."""
    asked = parser_for(benchmark).parse_args(arguments)
    cases = {case.name: case for case in benchmark.cases(asked)}
    for line in sys.stdin:
        question = Question(**json.loads(line))
        instance = cases[question.case].load(question.seed)
        outcome = benchmark.find(
            question.case, instance, timed_budget(question.budget), question.seed
        )
        answer = {
            "engine": str(Path(kfp_placement_engine.__file__).resolve()),
            "input": instance.input_hash,
            "found": asdict(outcome),
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    answer_all(importlib.import_module(f"benchmarks.{sys.argv[1]}").BENCHMARK, sys.argv[2:])
