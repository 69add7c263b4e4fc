"""Calls of templates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tests.controlplane.argo.state import Json, Run


@dataclass(frozen=True)
class Options:
    """Place and way in which a template is executed.

    Attributes:
        boundary: id of the node of the DAG around it.
        on_exit: whether it belongs to an exit handler.
        hooked: whether it is a hook.
        retried: whether it is an attempt of a step with retries.
    """

    boundary: str = ""
    on_exit: bool = False
    hooked: bool = False
    retried: bool = False

    @property
    def flag(self) -> dict[str, bool]:
        """The node's flags."""
        flags = {"hooked": self.hooked, "retried": self.retried}
        return {name: value for name, value in flags.items() if value}


@dataclass(frozen=True)
class Call:
    """A template and its arguments.

    Attributes:
        template: name of the template.
        arguments: arguments of the call.
    """

    template: str
    arguments: Mapping[str, Any]


class Calls(Protocol):
    """Executes templates of one run."""

    run: Run

    def execute(self, name: str, call: Call, options: Options) -> Json | None:
        """Bring a node as far as it goes now; the node, or None where there is none yet."""
