"""`scripts/bootstrap.sh` as a whole, on machines that lack one thing or another.

The machine is a PATH of chosen programs, the package index a local server, and uv a script that
writes down how it was called.
"""

import hashlib
import http.server
import importlib.util
import io
import os
import shutil
import stat
import subprocess
import sys
import threading
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from fetch_uv import this_platform

from tests.support.checkout import ROOT

FETCHED_UV = next(
    line.partition("=")[2]
    for line in (ROOT / "scripts/bootstrap.sh").read_text().splitlines()
    if line.startswith("fetched_uv=")
)

# Writes its arguments down, makes the environments it is asked for, fails where a test says so.
FAKE_UV = """#!/bin/sh
case "$1" in --version) echo "uv {version} (fake)"; exit ;; esac
echo "$* [index=${{UV_DEFAULT_INDEX:-}}]" >>"$UV_CALLS"
case "$*" in
    ${{UV_FAILS_ON:-nothing}}*) exit 1 ;;
    venv*) mkdir -p .venv/bin && cp "$FAKE_PYTHON" .venv/bin/python ;;
esac
"""

FAKE_PYTHON = """#!/bin/sh
{interceptions}
exec "{python}" "$@"
"""
WITHOUT_ENSUREPIP = 'PYTHONPATH="{blocked}"; export PYTHONPATH'
OLDER_THAN_SUPPORTED = 'case "$*" in *"(3, 11)"*) exit 1 ;; esac'


@dataclass
class Machine:
    """A checkout, a PATH, and what the bootstrap did there."""

    checkout: Path
    programs: Path
    environment: dict[str, str]

    def add_program(self, name: str, text: str) -> Path:
        """Put a script on PATH."""
        file = self.programs / name
        file.write_text(text)
        file.chmod(0o755)
        return file

    def add_python(self, *interceptions: str) -> None:
        """Put this Python on PATH, made worse by shell lines that run before it."""
        blocked = self.checkout.parent / "blocked"
        blocked.mkdir()
        (blocked / "ensurepip.py").write_text("raise ImportError('No module named ensurepip')\n")
        text = "\n".join(interceptions).replace("{blocked}", str(blocked))
        # The base interpreter: a virtual environment's own would make environments of itself.
        python = f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
        file = self.add_program("python3", FAKE_PYTHON.format(interceptions=text, python=python))
        self.environment["FAKE_PYTHON"] = str(file)

    def add_uv(self, version: str = FETCHED_UV) -> None:
        """Put the fake uv on PATH."""
        self.add_program("uv", FAKE_UV.format(version=version))

    def bootstrap(
        self, *arguments: str, code: int = 0, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the script, with nothing of the real environment; it must end with this code."""
        self.environment |= environment
        result = subprocess.run(
            ["scripts/bootstrap.sh", *arguments],
            cwd=self.checkout,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert result.returncode == code, result.stderr
        return result

    @property
    def uv_calls(self) -> list[str]:
        """What uv was asked to do, without its options."""
        file = Path(self.environment["UV_CALLS"])
        lines = file.read_text().splitlines() if file.exists() else []
        return [
            " ".join(word for word in line.split()[:3] if word[0] not in "-[") for line in lines
        ]


@pytest.fixture
def machine(tmp_path):
    """A machine with a shell and its usual tools, but neither Python nor uv."""
    checkout, programs, home = tmp_path / "checkout", tmp_path / "bin", tmp_path / "home"
    shutil.copytree(
        ROOT / "scripts", checkout / "scripts", ignore=shutil.ignore_patterns("__pycache__")
    )
    programs.mkdir()
    home.mkdir()
    for tool in ("sh", "awk", "cp", "dirname", "mkdir", "rm"):
        (programs / tool).symlink_to(str(shutil.which(tool)))
    environment = {
        "PATH": str(programs),
        "HOME": str(home),
        "UV_CALLS": str(tmp_path / "calls"),
        "PIP_CONFIG_FILE": os.devnull,
        "FAKE_PYTHON": str(programs / "sh"),
    }
    return Machine(checkout, programs, environment)


@pytest.fixture
def index(tmp_path):
    """A package index on this machine whose uv is the fake one."""
    folder = tmp_path / "index"
    here = this_platform()
    tag = f"{here.system}_{here.version[0]}_{here.version[1]}_{here.machine}"
    name = f"uv-{FETCHED_UV}-py3-none-{tag}.whl"
    record = f"uv-{FETCHED_UV}.dist-info"
    program = zipfile.ZipInfo(f"uv-{FETCHED_UV}.data/scripts/uv")
    program.external_attr = (stat.S_IFREG | 0o755) << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(program, FAKE_UV.format(version=FETCHED_UV))
        archive.writestr(
            f"{record}/METADATA", f"Metadata-Version: 2.1\nName: uv\nVersion: {FETCHED_UV}\n"
        )
        archive.writestr(
            f"{record}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n"
        )
        archive.writestr(f"{record}/RECORD", "")
    page = folder / "simple/uv/index.html"
    page.parent.mkdir(parents=True)
    (page.parent / name).write_bytes(buffer.getvalue())
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    page.write_text(f'<html><body><a href="{name}#sha256={digest}">{name}</a></body></html>')

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, directory=str(folder), **options)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/simple"
        server.shutdown()
        thread.join()


NO_INDEX = "http://127.0.0.1:9/simple"


def test_a_recent_uv_on_path_is_used(machine):
    machine.add_python()
    machine.add_uv()
    result = machine.bootstrap()
    assert machine.uv_calls == ["venv", "sync"]
    assert "sync --quiet" in Path(machine.environment["UV_CALLS"]).read_text()
    assert result.stdout == ""
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == ["bootstrap"]
    assert not (machine.checkout / ".uv-venv").exists()
    # An environment that exists is kept.
    machine.bootstrap()
    assert machine.uv_calls == ["venv", "sync", "sync"]


@pytest.mark.skipif(
    importlib.util.find_spec("ensurepip") is None,
    reason="this Python cannot install pip: python3-venv is not installed",
)
def test_with_pip_uv_is_installed_from_the_configured_index(machine, index):
    machine.add_python()
    assert "with pip" in machine.bootstrap(PIP_INDEX_URL=index).stderr
    assert (machine.checkout / ".uv-venv/bin/pip").exists()
    assert machine.uv_calls[0] == "venv"


@pytest.mark.parametrize("old", [None, "0.4.30"])
def test_without_ensurepip_uv_is_downloaded_from_the_configured_index_and_kept(machine, index, old):
    machine.add_python(WITHOUT_ENSUREPIP)
    if old is not None:
        machine.add_uv(old)
    assert "no pip" in machine.bootstrap(PIP_INDEX_URL=index).stderr
    assert (machine.checkout / ".uv-venv/bin/uv").exists()
    assert not (machine.checkout / ".uv-venv/bin/pip").exists()
    assert machine.uv_calls[0] == "venv"
    assert "no recent uv" not in machine.bootstrap(PIP_INDEX_URL=NO_INDEX).stderr


def test_without_ensurepip_and_index_the_package_to_install_is_named(machine):
    machine.add_python(WITHOUT_ENSUREPIP)
    result = machine.bootstrap(code=1, PIP_INDEX_URL=NO_INDEX)
    assert "127.0.0.1:9: " in result.stderr
    assert "apt install python3-venv" in result.stderr
    assert "Traceback" not in result.stderr


def test_with_neither_python_nor_uv_the_package_to_install_is_named(machine):
    assert "apt install python3 python3-venv" in machine.bootstrap(code=1).stderr


def test_an_older_python_fetches_a_uv_that_brings_a_newer_one(machine, index):
    machine.add_python(WITHOUT_ENSUREPIP, OLDER_THAN_SUPPORTED)
    machine.bootstrap(PIP_INDEX_URL=index)
    assert machine.uv_calls[:2] == ["python install 3.12", "venv"]


def test_when_uv_brings_no_python_the_package_to_install_is_named(machine):
    machine.add_python(OLDER_THAN_SUPPORTED)
    machine.add_uv()
    result = machine.bootstrap(code=1, UV_FAILS_ON="python install")
    assert "apt install python3 python3-venv" in result.stderr


def test_another_index_is_asked_by_name_and_hash(machine):
    machine.add_python()
    machine.add_uv()
    machine.bootstrap(PIP_INDEX_URL="https://mirror.example/simple")
    assert machine.uv_calls == ["venv", "export", "pip sync", "pip install"]
    calls = Path(machine.environment["UV_CALLS"]).read_text()
    assert calls.count("[index=https://mirror.example/simple]") == 4
    assert "--require-hashes" in calls


@pytest.mark.parametrize(
    ("pip_index", "fails_on", "calls"),
    [
        ("", "sync", ["venv", "sync", "export", "pip sync", "pip install"]),
        ("https://mirror.example", "pip sync", ["venv", "export", "pip sync", "sync"]),
    ],
)
def test_one_way_to_install_failing_the_other_is_tried(machine, pip_index, fails_on, calls):
    machine.add_python()
    machine.add_uv()
    result = machine.bootstrap(PIP_INDEX_URL=pip_index, UV_FAILS_ON=fails_on)
    assert "trying another way" in result.stderr
    assert machine.uv_calls == calls


def test_uv_can_be_run_through_the_bootstrap(machine):
    machine.add_python()
    machine.add_uv()
    machine.bootstrap("uv", "lock", "--check")
    assert Path(machine.environment["UV_CALLS"]).read_text().startswith("lock --check")
    assert not (machine.checkout / ".venv").exists()
