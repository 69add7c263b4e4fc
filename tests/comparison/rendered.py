"""Files that are part of the contract: what is installed, kinds, schemas, samples."""

import os
import shutil
import subprocess
from pathlib import Path

import yaml

from tests.comparison.cases import CaseFolder

FOLDERS = ("deploy", "samples")
SCHEMAS = "*.schema.json"
KUSTOMIZE = "KFP_PLACEMENT_KUSTOMIZE"
"""Environment variable: the program, if this machine has it."""

_FEATURES = ("gates", "opt-in", "prometheus", "webhook", "webhook-cert-manager")


def collect(cases: CaseFolder) -> None:
    """The files as they are, and `deploy` as kustomize renders it."""
    tree = Path("tree").resolve()
    for folder in FOLDERS:
        for path in sorted((tree / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                text = path.read_bytes().decode("utf-8", "backslashreplace")
                cases.write(f"files/{path.relative_to(tree)}", text)
    for path in sorted(tree.glob(f"*/**/schemas/{SCHEMAS}")):
        if ".venv" not in path.parts:
            cases.write(f"schemas/{path.name}", path.read_text("utf-8"))
    program = os.environ.get(KUSTOMIZE) or shutil.which("kustomize")
    if program:
        for features in ((), *((each,) for each in _FEATURES), _FEATURES[:4]):
            cases.write(f"rendered/{'-'.join(features) or 'base'}", _build(program, features))


def _build(program: str, features: tuple[str, ...]) -> str:
    folder = Path("overlay")
    folder.mkdir(exist_ok=True)
    deploy = os.path.relpath(Path("tree").resolve() / "deploy", folder.resolve())
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"{deploy}/base"],
        "components": [f"{deploy}/features/{name}" for name in features],
        "sortOptions": {"order": "fifo"},
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    done = subprocess.run([program, "build", folder], capture_output=True, text=True, check=False)
    return f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
