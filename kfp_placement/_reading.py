"""The engine's errors -> ours, with the same message."""

from collections.abc import Iterator
from contextlib import contextmanager

from kfp_placement.exceptions import RunError, UnknownStepError
from kfp_placement_engine import exceptions as engine


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turn the engine's errors into ours, with the same message."""
    try:
        yield
    except engine.UnknownStepError as error:
        raise UnknownStepError(str(error)) from error
    except engine.EngineError as error:
        raise RunError(str(error)) from error
