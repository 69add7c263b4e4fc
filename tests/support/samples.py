"""Find and load the samples and their components, which lie outside of any package."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.support.checkout import ROOT

SAMPLES = ROOT / "samples"
COMPONENTS = ROOT / "components"


def load_sample(name: str) -> ModuleType:
    """Import `samples/<name>/pipeline.py`."""
    return _load(SAMPLES / name / "pipeline.py")


def load_component(name: str) -> Any:
    """The component that `components/<name>/component.py` defines."""
    return getattr(_load(COMPONENTS / name / "component.py"), name)


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{path.stem}_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
