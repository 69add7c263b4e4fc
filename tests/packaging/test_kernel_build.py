"""`engine/hatch_build.py`: which compiler makes the engine's kernel, and what it is told."""

import os
import platform
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import hatch_build
from tests.support.checkout import ROOT

# Writes down what it is told and makes a library of it.
FAKE_COMPILER = """#!/bin/sh
echo "$*" >"$COMPILER_CALL"
while [ "$1" != -o ]; do shift; done
echo compiled >"$2"
"""


@pytest.fixture
def engine(tmp_path):
    """What the build needs of `engine`, to be changed by a test."""
    folder = tmp_path / "engine"
    shutil.copytree(ROOT / "engine/kernel", folder / "kernel")
    shutil.copy(ROOT / "engine/hatch_build.py", folder)
    (folder / hatch_build.PACKAGE).mkdir()
    return folder


@pytest.fixture
def system_compiler(tmp_path, monkeypatch):
    """A `cc` on PATH and nothing else."""
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    file = tmp_path / "cc"
    file.touch(0o755)
    return file


def build(engine: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Compile in place on a machine that has no home folder and little else."""
    home = {"HOME": str(engine / "no-home"), "PATH": os.environ["PATH"]}
    return subprocess.run(
        [sys.executable, "hatch_build.py"],
        cwd=engine,
        env=home | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def compiled(engine: Path) -> list[str]:
    return [file.name for file in (engine / hatch_build.PACKAGE).iterdir()]


def test_the_kernel_compiles_without_warnings_and_without_a_home_folder(engine):
    result = build(engine)
    assert (result.returncode, result.stderr) == (0, "")
    assert compiled(engine) == [hatch_build.LIBRARY]
    assert not (engine / "no-home").exists()


def test_a_kernel_that_does_not_compile_stops_the_build_with_the_place(engine):
    library = engine / hatch_build.PACKAGE / hatch_build.LIBRARY
    library.write_text("the one before")
    with (engine / "kernel/kernel.c").open("a") as source:
        source.write("\nint broken(void) { return nothing; }\n")
    result = build(engine)
    assert result.returncode != 0
    assert "kernel.c:" in result.stderr
    assert "the kernel does not compile" in result.stderr
    assert compiled(engine) == [hatch_build.LIBRARY]
    assert library.read_text() == "the one before"


def test_a_named_compiler_is_taken_and_further_flags_come_last(engine, tmp_path):
    compiler, call = tmp_path / "compiler", tmp_path / "call"
    compiler.write_text(FAKE_COMPILER)
    compiler.chmod(0o755)
    result = build(engine, CC=f"{compiler} --as-ours", CFLAGS="-O1 -g", COMPILER_CALL=str(call))
    assert result.returncode == 0, result.stderr
    words = call.read_text().split()
    assert words[0] == "--as-ours"
    assert "-ffp-contract=off" in words
    assert words.index("-O3") < words.index("-O1") < words.index("-g")
    assert not [word for word in words if word in ("-ffast-math", "-march=native")]
    assert compiled(engine) == [hatch_build.LIBRARY]


def test_without_zig_the_systems_compiler_is_taken(system_compiler, monkeypatch):
    monkeypatch.setitem(sys.modules, "ziglang", None)
    chosen = hatch_build.choose_compiler()
    assert chosen.command == (str(system_compiler),)
    assert "manylinux" not in chosen.platform_tag
    system_compiler.unlink()
    with pytest.raises(RuntimeError, match=r"install ziglang==\S+ or .* CC"):
        hatch_build.choose_compiler()


@pytest.mark.parametrize(
    ("system", "machine", "library", "target", "tag"),
    [
        ("linux", "x86_64", "glibc", "x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64"),
        ("linux", "aarch64", "glibc", "aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64"),
        ("linux", "x86_64", "", "x86_64-linux-musl", "musllinux_1_2_x86_64"),
        ("darwin", "arm64", "", "aarch64-macos.11.0", "macosx_11_0_arm64"),
        ("win32", "AMD64", "", "x86_64-windows-gnu", "win_amd64"),
    ],
)
def test_zig_makes_libraries_for_old_systems(monkeypatch, system, machine, library, target, tag):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(platform, "libc_ver", lambda: (library, ""))
    chosen = hatch_build.choose_compiler()
    assert chosen.command[-2:] == ("-target", target)
    assert chosen.platform_tag == tag


def test_a_machine_that_zig_does_not_serve_gets_the_systems_compiler(system_compiler, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "s390x")
    assert hatch_build.choose_compiler().command == (str(system_compiler),)


def test_the_lock_file_has_the_zig_that_builds_install():
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    locked = {package["name"]: package.get("version") for package in lock["package"]}
    assert f"ziglang=={locked['ziglang']}" == hatch_build.ZIG
