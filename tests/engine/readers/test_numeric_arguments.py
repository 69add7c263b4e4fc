"""Numbers that steps are given: from packages and from Workflows alike, and no texts."""

from typing import Any

import pytest
from kfp import compiler, dsl

from kfp_placement_engine import ReadOptions, read_run
from tests.support.packages import a_package, a_task, inputs


@dsl.component(base_image="python:3.12")
def fit(epochs: int, rate: float, shuffle: bool, key: str, sizes: list, limit: int = 7) -> int:
    """Take numbers, and other things."""
    return epochs


@dsl.component(base_image="python:3.12")
def score(depth: int, whole: str = ""):
    """Take one number."""


@dsl.component(base_image="python:3.12")
def wide(e: int = 5, d: float = 4.5, c: int = 3, b: int = 2, a: int = 1, text: str = "12345"):
    """Take many."""


@dsl.pipeline
def inner(count: int = 3):
    fit(epochs=count, rate=0.5, shuffle=False, key="1", sizes=[1], limit=2)


@dsl.pipeline(name="numbers")
def pipeline(epochs: int = 10, rate: float = 1e-3, key: str = "12345", huge: float = 1e300):
    first = fit(epochs=epochs, rate=rate, shuffle=True, key=key, sizes=[1, 2])
    score(depth=first.output)
    score(depth=4, whole=f"{epochs} epochs").set_display_name("const")
    inner(count=epochs)
    inner()
    wide()
    fit(epochs=1, rate=huge, shuffle=True, key=key, sizes=[]).set_display_name("huge")
    with dsl.ParallelFor([2, 4, 8]) as item:
        score(depth=item)
    with dsl.ParallelFor([{"depth": 1}, {"depth": 2}]) as item:
        score(depth=item.depth)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    path = tmp_path_factory.mktemp("numbers") / "package.yaml"
    compiler.Compiler().compile(pipeline, str(path))
    return path.read_bytes()


EXPECTED: dict[str, dict[str, float]] = {
    "fit": {"epochs": 10, "limit": 7, "rate": 0.001},
    "score": {},
    "score-2": {"depth": 4},
    "inner.fit": {"epochs": 10, "limit": 2, "rate": 0.5},
    "inner-2.fit": {"epochs": 3, "limit": 2, "rate": 0.5},
    "wide": {"a": 1, "b": 2, "c": 3, "d": 4.5},
    "fit-2": {"epochs": 1, "limit": 7},
    "for-loop-2[0].score-3": {"depth": 2},
    "for-loop-2[1].score-3": {"depth": 4},
    "for-loop-2[2].score-3": {"depth": 8},
    "for-loop-4[0].score-4": {"depth": 1},
    "for-loop-4[1].score-4": {"depth": 2},
}


def test_numbers_are_those_that_are_known_before_the_run(package):
    graph = read_run(package, name="run")
    assert {step.name: dict(step.arguments) for step in graph.steps} == EXPECTED
    assert all(list(step.arguments) == sorted(step.arguments) for step in graph.steps)


def test_arguments_of_the_run_are_passed_down(package):
    given: dict[str, Any] = {"epochs": "40", "rate": 0.25}
    graph = read_run(package, name="run", options=ReadOptions(arguments=given))
    assert graph.step("fit").arguments == {"epochs": 40, "limit": 7, "rate": 0.25}
    assert graph.step("inner.fit").arguments["epochs"] == 40


def test_what_is_declared_as_text_is_no_number_however_it_is_written(read):
    """It may be a secret; nor is what is declared as a number and is none, or too large."""
    kinds = {"key": "STRING", "on": "BOOLEAN", "rows": "NUMBER_INTEGER", "text": "NUMBER_DOUBLE"}
    kinds |= {"huge": "NUMBER_DOUBLE", "list": "NUMBER_INTEGER"}
    definitions = {name: {"parameterType": kind} for name, kind in kinds.items()}
    components = {
        "work": {"executorLabel": "exec-work", "inputDefinitions": {"parameters": definitions}}
    }
    given = inputs(key=12345, on=True, rows=5, text="12345", huge=-2e15, list=[1], other=9)
    graph = read(a_package({"work": a_task(inputs=given)}, components=components))
    assert graph.step("work").arguments == {"rows": 5}
