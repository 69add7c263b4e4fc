"""The command of a measurement on a control plane: sizes in, tables out, also of a part of it."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from benchmarks.tables import Table, as_markdown, as_text
from kfp_placement._files import write_whole
from kfp_placement_engine.exceptions import EngineError
from tests.controlplane.exceptions import ControlPlaneError

SizesT = TypeVar("SizesT", contravariant=True)


class Measurement(Protocol):
    """Measures; what it finds is kept at once."""

    def measure(self) -> None:
        """All of it."""

    def parts(self) -> Sequence[Table | Sequence[str]]:
        """What was found by now, for the page."""


def say(line: str) -> None:
    """Print what is going on, beside the tables."""
    print(line, file=sys.stderr, flush=True)


def measure_by_command(
    description: str | None,
    sizes_of: Callable[..., SizesT],
    measurement_of: Callable[[SizesT], Measurement],
    title: str,
) -> int:
    """Read what was asked for, measure, print; returns the exit code.

    Args:
        description: for the help.
        sizes_of: the sizes, each an option whose default is that of the class.
        measurement_of: measures with them.
        title: of the page.
    """
    parser = argparse.ArgumentParser(description=description)
    defaults: dict[str, Any] = vars(sizes_of())
    for name, default in defaults.items():
        option = f"--{name.replace('_', '-')}"
        kind = Path if default is None else type(default)
        parser.add_argument(option, type=kind, default=default, help=f"[{default}]")
    parser.add_argument("--output", type=Path, help="also write the tables there, as Markdown")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    measurement = measurement_of(sizes_of(**{name: getattr(asked, name) for name in defaults}))
    try:
        measurement.measure()
    except (ControlPlaneError, EngineError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted; what was measured is kept.", file=sys.stderr)
        return 130
    finally:
        parts = measurement.parts()
        for line in as_text(parts):
            print(line)
        if asked.output is not None:
            write_whole(asked.output.resolve(), as_markdown(title, parts))
    return 0
