"""Progress of something that takes a while, for whoever shows it."""

from collections.abc import Callable

Progress = Callable[[float, str], None]
"""Called with the share done (0 to 1) and a short text."""


GenerationProgress = Callable[[int, float], None]
"""Called with the generation and the share of a running time that is spent (0 to 1)."""


def no_progress(share: float, text: str) -> None:
    """Tell nobody."""


def no_generation_progress(generation: int, share: float) -> None:
    """Tell nobody."""
