"""Find and load the samples, which lie outside of any package."""

import importlib.util
from pathlib import Path
from types import ModuleType

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def load_sample(name: str) -> ModuleType:
    """Import `samples/<name>/pipeline.py`."""
    path = SAMPLES / name / "pipeline.py"
    spec = importlib.util.spec_from_file_location(f"sample_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
