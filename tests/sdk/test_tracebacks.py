"""What authors see of a wrong value: their own line and the message."""

import os
import subprocess
import sys

import pytest
from kfp import dsl

from kfp_placement import MarkValueError, PlacementError, Workers, place, placed, preview
from tests.support.pipelines import one_step

CELL = """\
from kfp import dsl
from kfp_placement import placed
@placed(memory='4GB')
@dsl.component(base_image='python:3.12')
def train(): pass
"""
CLUSTER = {"kind": "Cluster", "nodes": [{"name": "a", "cpu": "4 cores"}]}


@dsl.component(base_image="python:3.12")
def train() -> None: ...


VALUES = {
    "place": lambda: one_step(lambda task: place(task, duration="soon")),
    "placed": lambda: placed(memory="4GB")(train),
    "workers": lambda: Workers(2, cpu="four"),
    "budget": lambda: preview("no-such.yaml", budget="soon"),
    "confidence": lambda: preview("no-such.yaml", history="none", confidence="often"),
}
OTHERS = {
    "file": lambda: preview("no-such.yaml"),
    "cluster": lambda: preview("no-such.yaml", CLUSTER),
    "unknown": lambda: placed(typ="Training")(train),  # type: ignore[arg-type]
}


def test_a_notebook_shows_the_author_s_line_and_the_message(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-m", "IPython", "--colors=NoColor", "-c", CELL],
        capture_output=True,
        text=True,
        env={**os.environ, "IPYTHONDIR": str(tmp_path), "PYTHONWARNINGS": "ignore"},
        check=False,
    )
    first, *middle, last = (line for line in ran.stdout.splitlines() if line.strip())
    assert first == "Traceback (most recent call last):"
    assert any("@placed(memory='4GB')" in line for line in middle)
    assert len(middle) <= 3
    assert "MarkValueError: component 'train': memory: '4GB' is not a quantity" in last


@pytest.mark.parametrize("case", [*VALUES, *OTHERS])
def test_a_notebook_shows_no_line_of_the_libraries(case):
    with pytest.raises(PlacementError) as raised:
        (VALUES | OTHERS)[case]()
    shown = raised.value._render_traceback_()
    files = [line for line in shown if line.lstrip().startswith("File ")]
    assert all("tests" in file for file in files)
    assert str(raised.value) in shown[-1]


@pytest.mark.parametrize("case", VALUES)
def test_a_refused_value_has_one_traceback(case):
    with pytest.raises(MarkValueError) as raised:
        VALUES[case]()
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__
