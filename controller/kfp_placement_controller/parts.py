"""Parts of a process, which work in threads of their own."""

import contextlib
from collections.abc import Iterator
from typing import Protocol


class Part(Protocol):
    """Part of a process that works in a thread of its own."""

    def start(self) -> None:
        """Start; returns at once."""
        ...

    def stop(self) -> None:
        """End; returns when it has."""
        ...


@contextlib.contextmanager
def working(*parts: Part) -> Iterator[None]:
    """Let parts work as long as the context lasts; what starts last stops first.

    If one does not start, those before it stop.
    """
    with contextlib.ExitStack() as started:
        for part in parts:
            part.start()
            started.callback(part.stop)
        yield
