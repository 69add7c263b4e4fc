"""The kernel under AddressSanitizer and UndefinedBehaviorSanitizer, where a compiler has them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kfp_placement_engine
from tests.support.checkout import ROOT

KERNEL = ROOT / "engine" / "kernel" / "kernel.c"
FLAGS = [
    "-std=c11",
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-shared",
    "-fPIC",
    "-ffp-contract=off",
    "-include",
    str(Path(__file__).with_name("guards.h")),
]


def a_compiler() -> tuple[str, str]:
    """A compiler and its AddressSanitizer runtime, which must be loaded before all else."""
    for name, runtime in (("gcc", "libasan.so"), ("clang", "libclang_rt.asan.so")):
        compiler = shutil.which(name)
        if compiler is None:
            continue
        done = subprocess.run(
            [compiler, f"-print-file-name={runtime}"], capture_output=True, text=True, check=True
        )
        library = done.stdout.strip()
        if Path(library).is_absolute() and Path(library).exists():
            return compiler, library
    pytest.skip("neither gcc nor clang with AddressSanitizer is installed")


@pytest.mark.skipif(sys.platform != "linux", reason="the sanitizers are preloaded as on Linux")
def test_the_kernel_touches_no_memory_but_its_own(tmp_path):
    """And shifts, adds and converts only what it may; see `sanitized.py` for what is run."""
    compiler, runtime = a_compiler()
    assert kfp_placement_engine.__file__ is not None
    copy = tmp_path / "kfp_placement_engine"
    ours = shutil.ignore_patterns("__pycache__", "_kernel.*")
    shutil.copytree(Path(kfp_placement_engine.__file__).parent, copy, ignore=ours)
    subprocess.run(
        [compiler, *FLAGS, str(KERNEL), "-o", str(copy / "_kernel.so"), "-lm"], check=True
    )
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.problem.sanitized", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=600,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": str(tmp_path),
            # Python itself leaves memory behind when it ends.
            "ASAN_OPTIONS": "detect_leaks=0",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "LD_PRELOAD": runtime,
        },
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == "no error found\n"
