"""What is made from samples and components is up to date; `make regenerate` writes it again."""

from importlib import resources
from pathlib import Path

import kfp
import pytest
from kfp import compiler

from tests.support.golden import recording
from tests.support.samples import COMPONENTS, SAMPLES, load_component, load_sample
from tests.support.taxi_history import taxi_history

pytestmark = pytest.mark.golden

DEMO = Path(str(resources.files("kfp_placement"))) / "demo"
LOCATIONS = ("HOME-EDGE", "NITLAB-EDGE", "NITOS-CLOUD")
PIPELINES = {
    "01_first_hints": "first_hints",
    "02_data_locality": "data_locality",
    "03_gpu_and_images": "gpu_and_images",
    "04_unequal_steps": "unequal_steps",
    "05_shared_workspace": "shared_workspace",
    "06_taxi": "taxi",
}


def compare(pipeline, golden, folder):
    """The compiled pipeline is the golden package, letter by letter."""
    compiled = folder / "pipeline.yaml"
    compiler.Compiler().compile(pipeline, str(compiled))
    if recording():
        golden.write_bytes(compiled.read_bytes())
    expected = golden.read_text()
    version = f"sdkVersion: kfp-{kfp.__version__}\n"
    if version not in expected:
        pytest.skip(f"the golden packages are not made with kfp {kfp.__version__}")
    assert compiled.read_text() == expected, f"`make regenerate` writes {golden.name} again"


def test_every_sample_is_known_here():
    folders = {path.parent.name for path in SAMPLES.glob("*/pipeline.py")}
    assert folders == set(PIPELINES)


@pytest.mark.parametrize("name", PIPELINES)
def test_a_sample_compiles_to_the_package_beside_it(name, tmp_path):
    pipeline = getattr(load_sample(name), PIPELINES[name])
    compare(pipeline, SAMPLES / name / "pipeline.yaml", tmp_path)


@pytest.mark.parametrize("name", sorted(path.parent.name for path in COMPONENTS.glob("*/*.py")))
def test_a_component_compiles_to_the_file_beside_it(name, tmp_path):
    compare(load_component(name), COMPONENTS / name / "component.yaml", tmp_path)


@pytest.mark.parametrize("location", LOCATIONS)
def test_the_demo_holds_the_taxi_sample_for_every_location(location, tmp_path):
    pipeline = load_sample("06_taxi").taxi_for(location)
    compare(pipeline, DEMO / f"taxi-{location.lower()}.yaml", tmp_path)


def test_the_taxi_sample_has_past_runs_of_its_steps():
    path = SAMPLES / "06_taxi" / "history.yaml"
    if recording():
        path.write_text(taxi_history(), "utf-8")
    assert path.read_text("utf-8") == taxi_history(), "`make regenerate` writes it again"


@pytest.mark.parametrize(
    ("copy", "original"),
    [
        ("cluster.yaml", "06_taxi/cluster.yaml"),
        ("taxi-home-edge.yaml", "06_taxi/pipeline.yaml"),
        ("three-workers.yaml", "04_unequal_steps/cluster.yaml"),
        ("unequal-steps.yaml", "04_unequal_steps/pipeline.yaml"),
    ],
)
def test_the_demo_holds_copies_of_samples(copy, original):
    expected = (SAMPLES / original).read_bytes()
    if recording():
        (DEMO / copy).write_bytes(expected)
    assert (DEMO / copy).read_bytes() == expected
