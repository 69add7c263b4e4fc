"""What `import kfp_placement` offers, and what it costs."""

import ast
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import kfp_placement
from kfp_placement import PlacementError
from tests.support.checkout import ROOT


def python(code):
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_all_is_a_sorted_literal_and_complete():
    tree = ast.parse(Path(str(kfp_placement.__file__)).read_text())
    (names,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    listed = ast.literal_eval(names)
    assert listed == sorted(listed)
    for name in listed:
        assert getattr(kfp_placement, name) is not None
    assert set(listed) <= set(dir(kfp_placement))


def test_the_version_is_that_of_the_distribution():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert kfp_placement.__version__ == project["version"]


def test_looking_up_the_version_waits_until_somebody_asks():
    code = "import sys, kfp_placement; print('importlib.metadata' in sys.modules)"
    assert python(code) == ["False"]


def test_functions_keep_their_names_beside_the_modules_of_that_name():
    """Importing `kfp_placement.check` must not hide the function behind the module."""
    code = (
        "import kfp_placement.check, kfp_placement.preview, kfp_placement.cli;"
        "from kfp_placement import check, preview;"
        "print(callable(check), callable(preview))"
    )
    assert python(code) == ["True", "True"]


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="has no attribute 'plaice'"):
        _ = kfp_placement.plaice  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "module",
    [
        "kfp_placement",
        "kfp_placement.check",
        "kfp_placement.check.rules",
        "kfp_placement.check.findings",
        "kfp_placement.preview",
    ],
)
def test_what_needs_no_kfp_does_not_import_it(module):
    assert python(f"import sys, {module}; print('kfp' in sys.modules)") == ["False"]


def test_place_and_placed_take_the_same_options():
    place = inspect.signature(kfp_placement.place).parameters
    placed = inspect.signature(kfp_placement.placed).parameters
    assert list(place)[1:] == list(placed)[1:]
    assert all(place[name].default == placed[name].default for name in list(place)[1:])


def test_every_error_is_in_the_tree_that_the_module_draws():
    from kfp_placement import exceptions

    classes = [value for value in vars(exceptions).values() if inspect.isclass(value)]
    drawn = str(exceptions.__doc__)
    for error in classes:
        assert error.__name__ in drawn
        assert error.__name__ in kfp_placement.__all__
        assert issubclass(error, PlacementError | Warning)
