"""RUN as `module:pipeline`."""

import sys

import pytest

from tests.cli.conftest import CLUSTER

MODULE = """
from kfp import dsl
from kfp_placement import placed, placed_pipeline

print("side effects of an import")

@placed(type="Training", duration="20m")
@dsl.component(base_image="python:3.12")
def train(rows: int) -> int:
    return rows

@dsl.pipeline(name="small")
@placed_pipeline()
def small(rows: int = 1):
    train(rows=rows)

class holder:
    inner = small

number = 7

def plain():
    pass
"""


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    (tmp_path / "made_up_pipelines.py").write_text(MODULE, encoding="utf-8")
    yield "made_up_pipelines"
    for name in set(sys.modules) - before:
        if name.startswith(("made_up", "broken", "leaves")):
            del sys.modules[name]


@pytest.mark.parametrize(
    "name",
    [
        "made_up_pipelines:small",
        "made_up_pipelines.py:small",
        "./made_up_pipelines.py:small",
        "made_up_pipelines:holder.inner",
    ],
)
def test_planned(run, planner, name):
    result = run("plan", name, "-c", CLUSTER, "--arg", "rows=3")
    assert result.exit_code == 0, result.stderr
    (step,) = planner.graph.steps
    assert (step.name, step.type, step.duration_seconds) == ("train", "Training", 1200)
    # What the module prints is not part of the result.
    assert result.stdout.startswith("taxi: ")
    assert "side effects of an import" in result.stderr


OLD_SDK = """
import kfp.dsl as dsl

@dsl.pipeline(name="old")
def pipe():
    dsl.ContainerOp(name="a", image="alpine:3.20")
"""


@pytest.mark.parametrize("name", ["broken_old.py", "broken_old.py:pipe", "broken_old:pipe"])
def test_python_of_sdk_1_is_told_how_it_is_compiled(run, tmp_path, name):
    (tmp_path / "broken_old.py").write_text(OLD_SDK, encoding="utf-8")
    result = run("plan", name, "-c", CLUSTER)
    assert result.exit_code == 1
    assert "broken_old.py: is Python of KFP SDK 1.8" in result.stderr
    assert "dsl-compile --py FILE" in result.stderr


@pytest.mark.parametrize(
    ("use", "is_old"),
    [
        ("add_toleration('x')", True),
        ("add_pod_label('a', 'b')", True),
        ("container.set_image_pull_policy('Always')", True),
        ("add_node_selector_constraint('pool', 'a')", True),
        ("set_cpu_limt('1')", False),
        ("set_cpu_limit()", False),
    ],
)
def test_a_task_that_is_used_as_in_sdk_1_is_told_how_it_is_compiled(run, tmp_path, use, is_old):
    """The file loads a component, which every SDK can; the error of Python stays."""
    (tmp_path / "old_use.py").write_text(
        f"""
from kfp import components, dsl

op = components.load_component_from_text("name: t\\nimplementation: {{container: {{image: x}}}}")

@dsl.pipeline(name="x")
def pipe():
    op().{use}
""",
        encoding="utf-8",
    )
    result = run("plan", "old_use.py:pipe", "-c", CLUSTER)
    assert result.exit_code == 1
    assert "old_use.py:8: " in result.stderr
    assert ("dsl-compile --py FILE" in result.stderr) == is_old


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("no_such_module_here:x", 3, "no_such_module_here: no such module here"),
        ("no_such.module_here:x", 3, "no_such.module_here: no such module here"),
        ("no_such_file.py:x", 3, "no_such_file.py: no such file"),
        ("made_up_pipelines:gone", 3, "module made_up_pipelines has no 'gone'"),
        ("made_up_pipelines:number", 1, "is not a pipeline made with @dsl.pipeline"),
        ("made_up_pipelines:plain", 1, "put @dsl.pipeline above it"),
        ("broken_one:x", 1, "importing it failed at broken_one.py:1: ZeroDivisionError"),
        ("broken_two:x", 1, "importing it failed at broken_two.py:1: ModuleNotFoundError"),
        ("broken_three:x", 1, "importing it failed at broken_three.py:1: SyntaxError"),
        ("leaves:x", 1, "importing it failed at leaves.py:1: SystemExit"),
    ],
)
def test_refused(run, tmp_path, name, code, message):
    sources = {
        "broken_one": "1 / 0",
        "broken_two": "import no_such_dependency",
        "broken_three": "def",
        "leaves": "raise SystemExit(0)",
    }
    for module, source in sources.items():
        (tmp_path / f"{module}.py").write_text(source, encoding="utf-8")
    stderr = run.message(code, "check", name)
    assert message in stderr.splitlines()[-1]
    assert "Traceback" not in stderr


@pytest.mark.parametrize(
    "name",
    [
        "made_up_pipelines:smal",
        "made_up_pipelines:gone",
        "made_up_pipelines:holder.iner",
        "made_up_pipeline:small",
        "broken_four:x",
        "broken_five.py:x",
        "broken_mark:x",
        "broken_step:x",
        "near_name:x",
        "near_attribute:x",
    ],
)
def test_near_names_and_the_author_s_line_are_named(run, tmp_path, golden, name):
    sources = {
        "broken_four": "import broken_within\n\nbroken_within.half(1)",
        "broken_within": "def half(number):\n    return number / 0",
        "broken_five": "x = 1\ny = (2\nz = 3",
        "broken_mark": f"{MODULE}\nplaced(duration='soon')(train)",
        "broken_step": f"{MODULE}\n@dsl.pipeline\ndef x():\n    train(row=1)",
        "near_name": f"{MODULE}\n@dsl.pipeline\ndef x():\n    trian()",
        "near_attribute": f"{MODULE}\n@dsl.pipline\ndef x():\n    train()",
    }
    for module, source in sources.items():
        (tmp_path / f"{module}.py").write_text(source, encoding="utf-8")
    result = run("check", name)
    assert result.exit_code in (1, 3)
    golden(result.stderr.splitlines()[-1])


def test_a_file_elsewhere_is_named_in_full(run, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    file = elsewhere / "broken_six.py"
    file.write_text("\n1 / 0", encoding="utf-8")
    (tmp_path / "here").mkdir()
    result = run("check", f"{file}:x")
    assert "elsewhere/broken_six.py:2: ZeroDivisionError: division by zero" in result.stderr


def test_a_file_with_a_colon_is_a_file(run, tmp_path):
    (tmp_path / "a:b").write_text("", encoding="utf-8")
    assert run("check", "a:b").stderr == "Error: a:b: is empty\n"
