"""Errors of the engine.

::

    EngineError
    ├── InputError             a file or value that cannot be understood
    │   ├── QuantityError      "500q" is not a Kubernetes quantity
    │   ├── HintsError         the hints annotation is malformed
    │   ├── LimitError         larger or deeper than the documented limits
    │   └── RequestError       a request that does not go with the run or the cluster
    │       ├── UnknownStepError   a step that the run does not have
    │       ├── UnknownLoopError   a loop that the run does not have, or has twice
    │       ├── UnknownBranchError  a branch that the run does not have, or has twice
    │       ├── ChangeError        a change of run or cluster that cannot be planned
    │       └── ArgumentError      an argument that the run does not take, or of the wrong type
    ├── InputNotFoundError     a file, module or data set that is not there
    └── PlanningError          a problem or option that the planner refuses

Every message says what was wrong, which value, and what to do.
"""


class EngineError(Exception):
    """Base of all errors raised by the engine."""


class InputError(EngineError):
    """Input that cannot be understood; the message names the place in it."""


class QuantityError(InputError):
    """A quantity, duration or latency that is malformed, negative or absurd."""


class HintsError(InputError):
    """A malformed hints annotation."""


class RequestError(InputError):
    """A request that does not go with the run or the cluster, which themselves can be read."""


class UnknownStepError(RequestError):
    """A step that the run does not have; the message names those that come close."""


class UnknownLoopError(RequestError):
    """A loop that the run does not have, or has twice; the message names the run's loops."""


class UnknownBranchError(RequestError):
    """A branch that the run does not have, or has twice; the message names the run's branches."""


class ChangeError(RequestError):
    """A change that has no known form, or that changes what is not there."""


class ArgumentError(RequestError):
    """An argument that the run does not take, or of the wrong type."""


class LimitError(InputError):
    """Input beyond a documented limit."""


class InputNotFoundError(EngineError):
    """A file, module or data set that does not exist."""


class PlanningError(EngineError):
    """A problem or option that the planner refuses."""
