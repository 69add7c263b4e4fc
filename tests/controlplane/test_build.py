"""Builds of a control plane's programs; Go itself is a script here."""

import dataclasses
import re
import shutil
import threading
from pathlib import Path

import pytest

from tests.controlplane import build
from tests.controlplane.exceptions import BuildError, ControlPlaneUnavailableError

FAKE_GO = """#!/bin/sh
[ "$1" != list ] || {{ echo runtime; echo example.com/it; exit 0; }}
echo "$PWD: $*" >>{calls}
echo runtime >&2
[ -z "{fails}" ] || {{ echo "package is not there" >&2; exit 1; }}
echo example.com/it >&2
while [ "$1" != -o ]; do shift; done
echo program >"$2"
"""


@pytest.fixture
def fake_go(tmp_path, monkeypatch):
    """Puts a script on PATH as the only `go`; returns the file it writes its calls to."""

    def make(fails: str = "") -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        calls = tmp_path / "calls"
        script = folder / "go"
        script.write_text(FAKE_GO.format(calls=calls, fails=fails))
        script.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        return calls

    return make


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv(build.FOLDER_VARIABLE, str(folder))
    return folder


def test_the_pinned_versions():
    versions = {module.name: module.version for module in build.ALL}
    assert versions == {
        "etcd": "v3.6.8",
        "kwok": "v0.8.0",
        "kubernetes": "v1.36.3",
        "kustomize": "v5.8.2",
    }
    assert "gitVersion=v1.36.3 " in build.KUBERNETES.linker_flags
    assert "gitMinor=36 " in build.KUBERNETES.linker_flags


def test_every_program_is_built_once(fake_go, cache):
    calls = fake_go()
    lines: list[str] = []
    first = build.binaries(lines.append)
    for path in dataclasses.astuple(first):
        assert path.read_text() == "program\n"
        assert path.is_relative_to(cache)
    assert len(calls.read_text().splitlines()) == 5
    assert sum("built" in line for line in lines) == 5
    # From now on neither Go nor a word is needed.
    calls.unlink()
    lines.clear()
    assert build.binaries(lines.append) == first
    assert not calls.exists()
    assert not lines


def test_every_program_tells_how_far_it_is(fake_go, cache, monkeypatch):
    monkeypatch.setattr(build, "NEWS_SECONDS", 0.0)
    fake_go()
    lines: list[str] = []
    build.built(build.ETCD, cache, lines.append)
    assert [re.sub(r"\d+ s$", "0 s", line) for line in lines] == [
        "building etcd v3.6.8, 2 packages: takes minutes the first time, then never again",
        "etcd: 1 packages compiled, 0 s",
        "etcd: 2 packages compiled, 0 s",
        "built etcd in 0 s",
    ]


def test_another_pin_is_another_folder(tmp_path, monkeypatch):
    shutil.copytree(build.MODULES, tmp_path / "go")
    before = {module.name: module.key for module in build.ALL}
    monkeypatch.setattr(build, "MODULES", tmp_path / "go")
    assert {module.name: module.key for module in build.ALL} == before
    sums = tmp_path / "go/kwok/go.sum"
    sums.write_text(sums.read_text() + "\n")
    after = {module.name: module.key for module in build.ALL}
    assert {name for name in after if after[name] != before[name]} == {"kwok"}


def test_a_failure_says_why_and_leaves_nothing(fake_go, cache):
    fake_go(fails="yes")
    with pytest.raises(BuildError, match="package is not there"):
        build.binaries(lambda line: None)
    assert not [path for path in cache.iterdir() if path.is_dir()]


def test_what_a_killed_builder_left_is_removed(fake_go, cache):
    fake_go()
    left = cache / f"{build.ETCD.key}.partial-abc"
    left.mkdir(parents=True)
    build.built(build.ETCD, cache, lambda line: None)
    assert not left.exists()


def test_two_builders_build_once(fake_go, cache):
    calls = fake_go()
    builders = [
        threading.Thread(target=build.built, args=(build.ETCD, cache, lambda line: None))
        for _ in range(4)
    ]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    assert len(calls.read_text().splitlines()) == 1


@pytest.mark.usefixtures("cache")
def test_without_go_the_reason_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ControlPlaneUnavailableError, match=r"install Go 1\.26 or later"):
        build.binaries()


def test_where_programs_are_kept(monkeypatch):
    monkeypatch.delenv(build.FOLDER_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert build.cache_folder() == Path("/elsewhere/kfp-placement/controlplane")
    monkeypatch.setenv(build.FOLDER_VARIABLE, "/named")
    assert build.cache_folder() == Path("/named")
