"""One live line of progress on a terminal, nothing anywhere else."""

import sys
import time
from typing import Self

from kfp_placement.cli.terminal import can_redraw, columns_of
from kfp_placement_engine.render.terminal import clip_columns
from kfp_placement_engine.views.formatting import visible

_CLEAR = "\r\x1b[K"
_INTERVAL_SECONDS = 0.1


class LiveLine:
    """Callable as the engine's progress; gone when the block ends."""

    def __init__(self) -> None:
        self._on = can_redraw(sys.stderr)
        self._last = float("-inf")
        self._drawn = False

    def __call__(self, share: float, text: str) -> None:
        """Show how much is done (0 to 1) and what is being done."""
        now = time.monotonic()
        if not self._on or now - self._last < _INTERVAL_SECONDS:
            return
        self._last = now
        self._drawn = True
        percent = f"{min(max(share, 0.0), 1.0):4.0%}"
        columns = columns_of(sys.stderr) or len(text)
        sys.stderr.write(_CLEAR + clip_columns(f"{percent} {visible(text)}", columns - 1))
        sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
            self._drawn = False
