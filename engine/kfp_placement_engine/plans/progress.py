"""Callbacks by which reading and searching report their progress."""

from collections.abc import Callable

Progress = Callable[[float, str], None]
"""Callback for progress: the share done (0 to 1) and a short text."""


GenerationProgress = Callable[[int, float], None]
"""Callback for a search: the generation and the share of the running time spent (0 to 1)."""


def no_progress(share: float, text: str) -> None:
    """Ignore progress."""


def no_generation_progress(generation: int, share: float) -> None:
    """Ignore the progress of a search."""
