"""Conversion of the engine's errors to those of the SDK."""

from collections.abc import Iterator
from contextlib import contextmanager

from kfp_placement.exceptions import RunError, UnknownStepError
from kfp_placement_engine import exceptions as engine


@contextmanager
def engine_errors() -> Iterator[None]:
    """Raise the engine's errors in the block as errors of the SDK, with the same message."""
    try:
        yield
    except engine.UnknownStepError as error:
        raise UnknownStepError(str(error)) from error
    except engine.EngineError as error:
        raise RunError(str(error)) from error
