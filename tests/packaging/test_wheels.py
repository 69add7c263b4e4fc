"""What users install: three distributions, each with its own package and nothing else."""

import importlib
import inspect
import os
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = "0.1.0"
PACKAGES = {
    "kfp-placement": "kfp_placement",
    "kfp-placement-engine": "kfp_placement_engine",
    "kfp-placement-controller": "kfp_placement_controller",
}
PUBLIC_PACKAGES = ["kfp_placement", "kfp_placement_engine"]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The three wheels, built from this tree."""
    folder = tmp_path_factory.mktemp("dist")
    command = [
        "scripts/bootstrap.sh",
        "uv",
        "build",
        "--all-packages",
        "--wheel",
        "-o",
        str(folder),
    ]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return {file.name.split("-")[0]: file for file in folder.glob("*.whl")}


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_there_are_three(wheels):
    assert sorted(wheels) == sorted(PACKAGES.values())


@pytest.mark.parametrize("package", PACKAGES.values())
def test_a_wheel_holds_its_package_and_the_licence_only(wheels, package):
    with zipfile.ZipFile(wheels[package]) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    information = f"{package}-{VERSION}.dist-info"
    assert {name.split("/")[0] for name in names} == {package, information}
    assert {f"{package}/__init__.py", f"{package}/py.typed"} <= set(names)
    assert f"{information}/licenses/LICENSE" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


@pytest.mark.parametrize(("distribution", "package"), PACKAGES.items())
def test_a_wheel_says_what_it_is(wheels, distribution, package):
    metadata = metadata_of(wheels[package])
    assert metadata["Name"] == distribution
    assert metadata["Version"] == VERSION
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"


@pytest.mark.parametrize("package", PACKAGES.values())
def test_our_distributions_need_each_other_in_the_same_version(wheels, package):
    requirements = metadata_of(wheels[package]).get_all("Requires-Dist", [])
    ours = [text.split(";")[0].strip() for text in requirements if text.startswith("kfp-placement")]
    assert all(text.endswith(f"=={VERSION}") for text in ours)
    assert bool(ours) == (package != "kfp_placement_engine")


def locked_packages() -> dict[str, list[dict]]:
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    packages: dict[str, list[dict]] = {}
    for package in lock["package"]:
        packages.setdefault(package["name"], []).append(package)
    return packages


def needed_by(distribution: str) -> set[str]:
    """All that a distribution pulls in, its extras and everybody else's included."""
    packages, found, waiting = locked_packages(), set[str](), [distribution]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for package in packages[name]:
            groups = [package.get("dependencies", [])]
            groups += package.get("optional-dependencies", {}).values()
            waiting += [dependency["name"] for group in groups for dependency in group]
    return found


def test_a_controller_needs_neither_kfp_nor_the_sdk():
    needed = needed_by("kfp-placement-controller")
    assert "kfp-placement-engine" in needed
    assert not needed & {"kfp", "kfp-kubernetes", "kfp-placement", "kfp-pipeline-spec"}


def test_the_engine_needs_no_kubernetes_client():
    assert not needed_by("kfp-placement-engine") & {"kfp", "kubernetes", "kopf", "aiohttp", "click"}


def test_the_lock_file_names_the_public_index_only():
    hosts = set()
    for versions in locked_packages().values():
        for package in versions:
            hosts.add(package["source"].get("registry"))
            files = [*package.get("wheels", []), package.get("sdist", {})]
            hosts |= {"/".join(file["url"].split("/")[:3]) for file in files if file}
    assert hosts - {None} == {"https://pypi.org/simple", "https://files.pythonhosted.org"}


def test_the_lock_file_fits_the_requirements():
    ours = {"UV_DEFAULT_INDEX": "https://pypi.org/simple", "UV_OFFLINE": "1"}
    others = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    command = ["scripts/bootstrap.sh", "uv", "lock", "--check"]
    result = subprocess.run(
        command, cwd=ROOT, env=others | ours, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"run `make lock`: {result.stderr}"


@pytest.mark.parametrize(
    ("package", "heavy"),
    [
        ("kfp_placement_engine", ["kfp", "kubernetes", "kopf", "aiohttp", "numba", "highspy"]),
        ("kfp_placement_controller.main", ["kfp", "kfp_placement", "numba"]),
    ],
)
def test_importing_pulls_in_nothing_heavy(package, heavy):
    program = f"import sys, {package}; print(*[name for name in {heavy!r} if name in sys.modules])"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.split() == []


@pytest.mark.parametrize("package", PUBLIC_PACKAGES)
def test_the_public_names_are_sorted_and_exist(package):
    module = importlib.import_module(package)
    assert module.__all__ == sorted(module.__all__, key=_constants_classes_functions)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("package", PUBLIC_PACKAGES)
def test_every_public_name_is_listed(package):
    module = importlib.import_module(package)
    visible = {
        name
        for name, value in vars(module).items()
        if not (name.startswith("_") or inspect.ismodule(value) or name == "TYPE_CHECKING")
        and getattr(value, "__module__", package).startswith("kfp_placement")
    }
    assert visible - set(module.__all__) == set()


def _constants_classes_functions(name: str) -> tuple[int, str]:
    """The order that the linter asks for."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def test_the_controller_says_that_it_has_no_processes_yet():
    main = [sys.executable, "-m", "kfp_placement_controller.main"]
    result = subprocess.run(main, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "not in this release" in result.stderr
    version = subprocess.run([*main, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.strip() == f"kfp-placement-controller {VERSION}"
