"""What users install: four distributions, each with its own package and nothing else."""

import importlib
import inspect
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from hatch_build import LIBRARY
from tests.support.checkout import ROOT

VERSION = "0.1.0"
PACKAGES = {
    "kfp-placement": "kfp_placement",
    "kfp-placement-engine": "kfp_placement_engine",
    "kfp-placement-kube": "kfp_placement_kube",
    "kfp-placement-controller": "kfp_placement_controller",
}
KERNEL_SOURCES = [*ROOT.glob("engine/kernel/*.[ch]")]
NEEDED_GLIBC = re.compile(rb"GLIBC_(\d+\.\d+)")
PUBLIC_PACKAGES = ["kfp_placement", "kfp_placement_engine"]


def printed(*command, environment=None):
    """Return what a command prints, which must end well."""
    result = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The four source distributions and the wheels built from them."""
    folder = tmp_path_factory.mktemp("dist")
    # The compiler that releases are built with, whatever this machine names.
    others = {name: os.environ[name] for name in os.environ if name not in ("CC", "CFLAGS")}
    command = ("scripts/bootstrap.sh", "uv", "build", "--all-packages", "-o", str(folder))
    printed(*command, environment=others)
    return folder


@pytest.fixture(scope="module")
def wheels(dist):
    """The wheels by package."""
    return {file.name.split("-")[0]: file for file in dist.glob("*.whl")}


@pytest.fixture(scope="module")
def installed_engine(wheels, tmp_path_factory):
    """A folder with what the engine's wheel installs."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheels["kfp_placement_engine"]) as archive:
        archive.extractall(folder)
    return folder


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


@pytest.mark.parametrize("package", PACKAGES.values())
def test_a_wheel_holds_its_package_and_the_licence_only(wheels, package):
    with zipfile.ZipFile(wheels[package]) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    information = f"{package}-{VERSION}.dist-info"
    assert {name.split("/")[0] for name in names} == {package, information}
    assert {f"{package}/__init__.py", f"{package}/py.typed"} <= set(names)
    assert f"{information}/licenses/LICENSE" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    libraries = [name for name in names if "/_kernel" in name]
    assert libraries == [f"{package}/{LIBRARY}"] * (package == "kfp_placement_engine")


def test_only_the_engine_depends_on_the_system_and_on_no_version_of_python(wheels):
    assert sorted(wheels) == sorted(PACKAGES.values())
    tags = {package: file.stem.split("-", 2)[2] for package, file in wheels.items()}
    engine = tags.pop("kfp_placement_engine")
    assert set(tags.values()) == {"py3-none-any"}
    assert engine.startswith("py3-none-")
    assert engine != "py3-none-any"
    if sys.platform == "linux":
        assert engine.startswith(("py3-none-manylinux_2_17_", "py3-none-musllinux_1_2_"))


def test_the_kernel_needs_no_newer_c_library_than_its_wheel_says(installed_engine, wheels):
    if "manylinux_2_17" not in wheels["kfp_placement_engine"].name:
        pytest.skip("made for no version of glibc")
    library = (installed_engine / "kfp_placement_engine" / LIBRARY).read_bytes()
    versions = {tuple(map(int, version.split(b"."))) for version in NEEDED_GLIBC.findall(library)}
    assert versions
    assert max(versions) <= (2, 17)
    assert str(ROOT).encode() not in library


def test_an_installed_engine_loads_its_own_kernel(installed_engine):
    program = "from kfp_placement_engine.problem import kernel; print(kernel.KERNEL._name)"
    environment = os.environ | {"PYTHONPATH": str(installed_engine)}
    loaded = printed(sys.executable, "-c", program, environment=environment)
    assert Path(loaded.strip()) == installed_engine / "kfp_placement_engine" / LIBRARY


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_one_kernel_serves_every_python(installed_engine, version):
    library = installed_engine / "kfp_placement_engine" / LIBRARY
    program = f"import ctypes; print(ctypes.CDLL({str(library)!r}).sizes())"
    try:
        command = [f"python{version}", "-c", program]
        loaded = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        # A version manager's stand-in for a Python that is not there fails, too.
        if "Traceback" in (getattr(error, "stderr", None) or ""):
            raise
        pytest.skip(f"no python{version} here")
    assert int(loaded.stdout) > 0


def test_the_engine_can_be_built_from_its_source_distribution(dist):
    (file,) = dist.glob("kfp_placement_engine-*.tar.gz")
    with tarfile.open(file) as archive:
        members = {member.name.partition("/")[2]: member for member in archive.getmembers()}
    sources = {path.relative_to(ROOT / "engine").as_posix() for path in KERNEL_SOURCES}
    assert {*sources, "hatch_build.py", "pyproject.toml", "LICENSE"} <= set(members)
    assert members["LICENSE"].isfile()
    assert not [name for name in members if name.endswith((".so", ".dylib", ".dll", ".pyc"))]


@pytest.mark.parametrize("folder", ["engine", "kube", "controller"])
def test_there_is_one_licence(folder):
    assert (ROOT / folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


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
    assert bool(ours) == (package not in ("kfp_placement_engine", "kfp_placement_kube"))


def locked_packages() -> dict[str, list[dict]]:
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    packages: dict[str, list[dict]] = {}
    for package in lock["package"]:
        packages.setdefault(package["name"], []).append(package)
    return packages


def needed_by(distribution: str, *, with_extras: bool = True) -> set[str]:
    """All that a distribution pulls in; with its extras and everybody else's, or with none."""
    packages, needed, waiting = locked_packages(), set[str](), [distribution]
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed.add(name)
        for package in packages[name]:
            groups = [package.get("dependencies", [])]
            groups += package.get("optional-dependencies", {}).values() if with_extras else ()
            waiting += [dependency["name"] for group in groups for dependency in group]
    return needed


def test_a_controller_needs_neither_kfp_nor_the_sdk():
    needed = needed_by("kfp-placement-controller")
    assert {"kfp-placement-engine", "kfp-placement-kube"} <= needed
    assert not needed & {"kfp", "kfp-kubernetes", "kfp-placement", "kfp-pipeline-spec"}


def test_a_controller_in_a_pod_needs_no_kubernetes_client():
    needed = needed_by("kfp-placement-controller", with_extras=False)
    assert {"kopf", "kfp-placement-kube"} <= needed
    assert "kubernetes" not in needed


def test_the_engine_needs_no_kubernetes_client():
    assert not needed_by("kfp-placement-engine") & {"kfp", "kubernetes", "kopf", "aiohttp", "click"}


def test_the_way_to_an_api_server_needs_neither_kfp_nor_ours():
    needed = needed_by("kfp-placement-kube")
    assert not needed & {"kfp", "kopf", "prometheus-client", "pydantic", "numpy"}
    assert [name for name in needed if name.startswith("kfp")] == ["kfp-placement-kube"]


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
    # If it does not: `make lock`.
    printed("scripts/bootstrap.sh", "uv", "lock", "--check", environment=others | ours)


@pytest.mark.parametrize(
    ("package", "heavy"),
    [
        ("kfp_placement_engine", ["kfp", "kubernetes", "kopf", "aiohttp", "highspy"]),
        ("kfp_placement_kube.client", ["kfp", "kubernetes", "pydantic", "kfp_placement_engine"]),
        (
            "kfp_placement_controller.main",
            ["kfp", "kfp_placement", "kubernetes", "numpy", "aiohttp"],
        ),
    ],
)
def test_importing_pulls_in_nothing_heavy(package, heavy):
    program = f"import sys, {package}; print(*[name for name in {heavy!r} if name in sys.modules])"
    assert printed(sys.executable, "-c", program).split() == []


@pytest.mark.parametrize("package", PUBLIC_PACKAGES)
def test_the_public_names_exist_and_all_are_listed(package):
    module = importlib.import_module(package)
    assert [name for name in module.__all__ if getattr(module, name) is None] == []
    visible = {
        name
        for name, value in vars(module).items()
        if not (name.startswith("_") or inspect.ismodule(value) or name == "TYPE_CHECKING")
        and getattr(value, "__module__", package).startswith("kfp_placement")
    }
    assert visible - set(module.__all__) == set()


def test_the_controller_asks_which_process_and_says_its_version():
    main = [sys.executable, "-m", "kfp_placement_controller.main"]
    result = subprocess.run(main, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "required: PROCESS" in result.stderr
    assert printed(*main, "--version").strip() == f"kfp-placement-controller {VERSION}"
