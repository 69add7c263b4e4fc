"""Asks one tree one group of cases: `python -P -m tests.comparison.collect GROUP FOLDER ...`.

Runs with the Python of the tree that is asked. Of our own packages only entry points are imported.
"""

import argparse
import importlib
import os
import tempfile
from pathlib import Path

from tests.comparison.cases import CaseFolder, Share
from tests.comparison.frozen_time import freeze
from tests.comparison.groups import GROUPS
from tests.comparison.inputs import lay_out

ENVIRONMENT = {"COLUMNS": "120", "TERM": "dumb", "TZ": "UTC", "KUBECONFIG": "no-kubeconfig"}


def main() -> None:
    """Collect as the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("group", choices=GROUPS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tree", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--share", type=int, default=0)
    parser.add_argument("--of", type=int, default=1)
    asked = parser.parse_args()
    group = GROUPS[asked.group]
    cases = CaseFolder(asked.folder.resolve(), Share(asked.share, asked.of))
    os.environ.update(ENVIRONMENT)
    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder), asked.tree, asked.data)
        os.chdir(folder)
        if group.frozen:
            freeze()
        module, function = group.collector.split(":")
        getattr(importlib.import_module(f"tests.comparison.{module}"), function)(cases)
        os.chdir("/")


if __name__ == "__main__":
    main()
