"""Hints of one step: what the annotation `kfp-placement.dev/hints` carries."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.quantities import parse_duration, parse_latency_ms, parse_quantity

CURRENT_VERSION = 1


def _as_value_error(parse: Any) -> BeforeValidator:
    def validate(value: Any) -> Any:
        try:
            return parse(value)
        except QuantityError as error:
            raise ValueError(str(error)) from error

    return BeforeValidator(validate)


Seconds = Annotated[float, _as_value_error(parse_duration)]
Bytes = Annotated[int, _as_value_error(parse_quantity)]
Milliseconds = Annotated[float, _as_value_error(parse_latency_ms)]


class StepHints(BaseModel):
    """What an author says about one step beyond its labels.

    Values are parsed to canonical numbers; `contract.codec` writes them back as text.
    """

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)

    version: int = Field(default=CURRENT_VERSION, alias="v", ge=1)
    """Version of the hints; a newer one is read as far as it is known."""

    duration_seconds: Seconds | None = Field(default=None, alias="duration")
    """Run time of the main container on the reference node (speed 1)."""

    output_bytes: Mapping[str, Bytes] = Field(default_factory=dict, alias="outputs")
    """Size of each named output."""

    input_bytes: Mapping[str, Bytes] = Field(default_factory=dict, alias="inputs")
    """Size of each named input, where it is not another step's output (or differs from it)."""

    max_latency_ms: Milliseconds | None = Field(default=None, alias="maxLatency")
    """Hard limit of the round trip to the step's location."""

    priority: int | None = Field(default=None, ge=-1_000_000, le=1_000_000)
    """Importance of the run among others planned at the same time; larger is more important.

    The largest of a run's steps counts. None: the default of the step's type, else 0.
    """

    type_guessed: bool = Field(default=False, alias="typeGuessed")
    """The SDK guessed the step's type from its name."""
