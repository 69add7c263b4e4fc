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
    MissingLibraryError,
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
    from kfp_placement.clusters.description import Cluster, Node
    from kfp_placement.clusters.examples import example_cluster
    from kfp_placement.decorators import placed, placed_pipeline
    from kfp_placement.live.notebook import Run, run
    from kfp_placement.preview.planned import Preview, WhatIf
    from kfp_placement.preview.suggestions import Suggestion, Suggestions
    from kfp_placement.steps import place
    from kfp_placement.workers import Workers

    __version__: str

__all__ = [
    "CheckReport",
    "Cluster",
    "ConflictError",
    "Finding",
    "MarkValueError",
    "MissingLibraryError",
    "Node",
    "NotConstantError",
    "PlacementError",
    "PlacementWarning",
    "Preview",
    "Run",
    "RunError",
    "Suggestion",
    "Suggestions",
    "UnknownOptionError",
    "UnknownStepError",
    "UsageError",
    "WhatIf",
    "Workers",
    "__version__",
    "check",
    "example_cluster",
    "place",
    "placed",
    "placed_pipeline",
    "preview",
    "run",
]

# Importing kfp takes 1.7 s; the command line, `check` and `preview` of a compiled package need none
# of it. So what needs kfp is imported when it is first asked for.
_LAZY = {
    "CheckReport": "check.findings",
    "Cluster": "clusters.description",
    "Finding": "check.findings",
    "Node": "clusters.description",
    "Preview": "preview.planned",
    "Run": "live.notebook",
    "Suggestion": "preview.suggestions",
    "Suggestions": "preview.suggestions",
    "WhatIf": "preview.planned",
    "Workers": "workers",
    "example_cluster": "clusters.examples",
    "place": "steps",
    "placed": "decorators",
    "placed_pipeline": "decorators",
    "run": "live.notebook",
}

if not TYPE_CHECKING:  # else every name would seem to exist

    def __getattr__(name: str) -> Any:
        """Import a public name on first use (PEP 562)."""
        if name == "__version__":
            # The package's own version costs more to look up than all the rest of this module.
            value = importlib.import_module("importlib.metadata").version("kfp-placement")
        elif name in _LAZY:
            value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
