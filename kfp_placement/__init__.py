"""Plan where the steps of a Kubeflow Pipelines run go, before it starts.

Mark steps with `place`, `placed` and `placed_pipeline`, see what would surprise with `check`, and
the plan with `preview`; compile and upload as always with KFP.
"""

import importlib
from typing import TYPE_CHECKING, Any

from kfp_placement.check import check
from kfp_placement.exceptions import (
    ConflictError,
    MarkValueError,
    NotConstantError,
    PlacementError,
    PlacementWarning,
    RunError,
    UnknownOptionError,
    UnknownStepError,
    UsageError,
)
from kfp_placement.preview import preview

if TYPE_CHECKING:
    from kfp_placement.check.findings import CheckReport, Finding
    from kfp_placement.decorators import placed, placed_pipeline
    from kfp_placement.preview.planned import Preview
    from kfp_placement.steps import place

__all__ = [
    "CheckReport",
    "ConflictError",
    "Finding",
    "MarkValueError",
    "NotConstantError",
    "PlacementError",
    "PlacementWarning",
    "Preview",
    "RunError",
    "UnknownOptionError",
    "UnknownStepError",
    "UsageError",
    "check",
    "place",
    "placed",
    "placed_pipeline",
    "preview",
]

# Importing kfp takes 1.7 s; the command line, `check` and `preview` of a compiled package need none
# of it. So what needs kfp is imported when it is first asked for.
_LAZY = {
    "CheckReport": "check.findings",
    "Finding": "check.findings",
    "Preview": "preview.planned",
    "place": "steps",
    "placed": "decorators",
    "placed_pipeline": "decorators",
}

if not TYPE_CHECKING:  # else every name would seem to exist

    def __getattr__(name: str) -> Any:
        """Import a public name on first use (PEP 562)."""
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
