"""What a tree's own tests see of it: they play scenarios and ask the commands.

The tests lie and import differently in each tree; `tests/support/recording.py` keeps what they see.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.comparison.cases import CaseFolder

FOLDER = "KFP_PLACEMENT_RECORD"
SHOWN_LINES = 30


def collect_controller(cases: CaseFolder) -> None:
    """Scenarios played in memory."""
    _collect(cases, "tests/controller", "--ignore=tests/controller/cluster_bench")


def collect_commands(cases: CaseFolder) -> None:
    """Every command line of the tests of the command line."""
    _collect(cases, "tests/cli")


def _collect(cases: CaseFolder, *arguments: str) -> None:
    data = str(Path("data").resolve())
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder, "records")
        records.mkdir()
        environment = {
            **os.environ,
            FOLDER: str(records),
            "KFP_PLACEMENT_DATA": data,
            "HYPOTHESIS_STORAGE_DIRECTORY": str(Path(folder, "hypothesis")),
        }
        for ours in ("PYTHONPATH", "COLUMNS", "KUBECONFIG"):
            environment.pop(ours, None)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        command += ["-m", "not hypothesis"]
        done = subprocess.run(
            command,
            cwd=Path("tree").resolve(),
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        for path in sorted(records.glob("*.jsonl")):
            lines = path.read_text("utf-8").splitlines()
            found = [_shown(json.loads(line)) for line in lines]
            cases.write(path.stem, "\n".join(found))
        lines = done.stdout.splitlines()
        if done.returncode > 1:
            raise SystemExit("\n".join([*lines[-SHOWN_LINES:], done.stderr]))
        # A test that fails has seen less, so which ones do is compared too.
        failed = [line.partition("::")[2] for line in lines if line.startswith(("FAILED", "ERROR"))]
        cases.write("tests-that-fail", "".join(f"{each.split(' - ')[0]}\n" for each in failed))


def _shown(record: dict[str, Any]) -> str:
    """A record for people: texts as they are, everything else indented."""
    texts = {key: record.pop(key) for key in ("stdout", "stderr") if key in record}
    plain = json.dumps(record, indent=1)
    return "\n".join([plain, *(f"--- {key}\n{text}" for key, text in texts.items() if text), ""])
