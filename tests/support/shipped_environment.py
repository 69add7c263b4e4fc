"""The Python environment of the controller's image: what it needs, and nothing else.

The tests' own environment has KFP and with it the official Kubernetes client, which kopf imports
wherever it is installed: processes there take 66 MB more than in the image.
"""

import subprocess
import sys
from pathlib import Path

from tests.support.checkout import ROOT

_OURS = ("engine", "kube", "controller")


def make_shipped_environment(folder: Path) -> Path:
    """Install what `uv.lock` names for the controller, and this tree; returns the Python of it.

    The same as `controller/Dockerfile` does, except that our parts are not copied.

    Raises:
        subprocess.CalledProcessError: it could not be installed; the output says why.
    """
    python, locked = folder / "bin/python", folder.with_suffix(".txt")
    package = ("--package", "kfp-placement-controller", "--no-default-groups")
    ours = [argument for part in _OURS for argument in ("--editable", f"./{part}")]
    into = ("--quiet", "--python", str(python))
    for command in (
        ("venv", "--quiet", "--python", sys.executable, str(folder)),
        (
            *("export", "--quiet", "--frozen", "--no-emit-workspace", *package),
            *("--output-file", str(locked)),
        ),
        ("pip", "sync", *into, "--require-hashes", str(locked)),
        ("pip", "install", *into, "--no-deps", *ours),
    ):
        subprocess.run(("scripts/bootstrap.sh", "uv", *command), cwd=ROOT, check=True)
    return python
