"""Compiles the C kernel in `kernel/` into the library that `problem/kernel.py` loads.

A build hook of hatchling: an editable install gets the library beside the Python sources, a wheel
brings it along. Run as a program this compiles in place and installs nothing.

The compiler is `$CC` where that is set, else Zig's, which comes as a Python package and makes
libraries for older systems than the one it runs on, else `cc`. `$CFLAGS` is appended to our flags.
"""

import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
PACKAGE = "kfp_placement_engine"
LIBRARY = {"darwin": "_kernel.dylib", "win32": "_kernel.dll"}.get(sys.platform, "_kernel.so")

# One version, so that every build of a release has the same kernel. `uv.lock` has it, too.
ZIG = "ziglang==0.17.1"

# Nothing that lets two machines compute two plans: no -ffast-math, no -march, no fused operations.
FLAGS = "-std=c11 -O3 -g0 -ffp-contract=off -fno-math-errno -shared -fPIC -Wall -Wextra"


class Compiler(NamedTuple):
    """A command that compiles C.

    Attributes:
        command: the program and its first arguments.
        platform_tag: platform on which its libraries run, as wheels name it.
    """

    command: tuple[str, ...]
    platform_tag: str


def choose_compiler() -> Compiler:
    """Return the compiler to use: `$CC`, else Zig, else `cc`.

    Raises:
        RuntimeError: there is none of them.
    """
    here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if named := os.environ.get("CC"):
        return Compiler(tuple(shlex.split(named)), here)
    target = _zig_target()
    if target is not None and importlib.util.find_spec("ziglang") is not None:
        zig = (sys.executable, "-m", "ziglang", "cc", "-target", target[0])
        return Compiler(zig, target[1])
    if system_cc := shutil.which("cc"):
        return Compiler((system_cc,), here)
    raise RuntimeError(f"no C compiler: install {ZIG} or a system's `cc`, or name one in CC")


def _zig_target() -> tuple[str, str] | None:
    """Return the target of Zig, and the tag of wheels with it; None where `cc` compiles."""
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    if machine not in ("x86_64", "aarch64") or sys.maxsize < 2**32:
        return None
    if sys.platform == "darwin":
        arch = {"aarch64": "arm64"}.get(machine, machine)
        return f"{machine}-macos.11.0", f"macosx_11_0_{arch}"
    if sys.platform == "win32":
        arch = {"aarch64": "arm64", "x86_64": "amd64"}[machine]
        return f"{machine}-windows-gnu", f"win_{arch}"
    if sys.platform != "linux":
        return None
    if platform.libc_ver()[0] == "glibc":
        return f"{machine}-linux-gnu.2.17", f"manylinux_2_17_{machine}"
    return f"{machine}-linux-musl", f"musllinux_1_2_{machine}"


def compile_kernel(compiler: Compiler, library: Path) -> None:
    """Compile the kernel; an existing library stays whole until the new one replaces it.

    Raises:
        RuntimeError: the compiler failed; what it says went to standard error.
    """
    source = ROOT / "kernel" / "kernel.c"
    unfinished = library.with_name(f"{library.stem}.{os.getpid()}{library.suffix}")
    flags = [*FLAGS.split(), *shlex.split(os.environ.get("CFLAGS", ""))]
    mathematics = [] if sys.platform == "win32" else ["-lm"]
    command = [*compiler.command, *flags, str(source), "-o", str(unfinished), *mathematics]
    with tempfile.TemporaryDirectory(prefix="kernel-") as cache:
        # Zig's default lies in the home folder, which a build may not have.
        environment = {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache} | os.environ
        try:
            done = subprocess.run(command, env=environment, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"the kernel does not compile: {shlex.join(command)}")
            unfinished.replace(library)
        finally:
            unfinished.unlink(missing_ok=True)


class KernelBuildHook(BuildHookInterface[Any]):
    """Puts the compiled kernel into the wheel."""

    def dependencies(self) -> list[str]:
        """Return what to install for the build: Zig, unless a compiler is named."""
        return [] if os.environ.get("CC") or _zig_target() is None else [ZIG]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the kernel, in place for an editable install, in a temporary folder if not."""
        compiler = choose_compiler()
        build_data["pure_python"] = False
        # Any Python 3: the library is loaded with ctypes and knows nothing of Python.
        build_data["tag"] = f"py3-none-{compiler.platform_tag}"
        if version == "editable":
            compile_kernel(compiler, ROOT / PACKAGE / LIBRARY)
            return
        self._folder = tempfile.TemporaryDirectory(prefix="kernel-")
        library = Path(self._folder.name) / LIBRARY
        compile_kernel(compiler, library)
        build_data["force_include"][str(library)] = f"{PACKAGE}/{LIBRARY}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled aside."""
        if version != "editable":
            self._folder.cleanup()


if __name__ == "__main__":
    compile_kernel(choose_compiler(), ROOT / PACKAGE / LIBRARY)
