"""The checkout that is tested."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""Folder of the checkout."""


def named(path: Path) -> str:
    """Return the path of a file from the checkout's folder on."""
    return str(path.relative_to(ROOT))
