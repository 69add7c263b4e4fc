"""How far something is that takes a while: told to whoever shows it."""

from collections.abc import Callable

Progress = Callable[[float, str], None]
"""Called with the share done (0 to 1) and a short text."""


def no_progress(share: float, text: str) -> None:
    """Tell nobody."""
