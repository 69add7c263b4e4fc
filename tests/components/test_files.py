"""Every component has the same files, and they agree."""

import importlib.util
from importlib import metadata

import pytest
import yaml

from tests.support.samples import COMPONENTS, SAMPLES, load_component

NAMES = sorted(path.name for path in COMPONENTS.iterdir() if path.is_dir())
FILES = {"README.md", "component.py", "component.yaml", "metadata.yaml"}


@pytest.mark.parametrize("name", NAMES)
def test_a_component_has_its_files(name):
    folder = COMPONENTS / name
    assert {path.name for path in folder.iterdir() if path.is_file()} == FILES
    about = yaml.safe_load((folder / "metadata.yaml").read_text("utf-8"))
    assert set(about) == {"name", "stability", "dependencies", "lastVerified"}
    assert about["name"] == load_component(name).name == name
    assert about["stability"] in ("alpha", "beta", "stable")
    page = (folder / "README.md").read_text("utf-8")
    described = load_component(name).component_spec
    for each in (*(described.inputs or {}), *(described.outputs or {})):
        assert f"| `{each}` |" in page


@pytest.mark.parametrize("name", NAMES)
def test_what_it_depends_on_is_installed_by_it_and_tested_here(name):
    folder = COMPONENTS / name
    wanted = yaml.safe_load((folder / "metadata.yaml").read_text("utf-8"))["dependencies"]
    source = (folder / "component.py").read_text("utf-8")
    for requirement in wanted:
        assert f'packages_to_install=["{requirement}"]' in source
        package, _, version = requirement.partition("==")
        if importlib.util.find_spec("xgboost") is not None and package == "xgboost-cpu":
            assert version in {
                each.version for each in metadata.distributions() if "xgboost" in each.name
            }
    assert bool(wanted) == ("packages_to_install" in source)


@pytest.mark.parametrize("name", NAMES)
def test_two_samples_share_it(name):
    sources = [path.read_text("utf-8") for path in SAMPLES.glob("0*/pipeline.py")]
    assert sum(f'"{name}"' in source for source in sources) >= 2
