"""Questions to KFP's API about the packages of runs, and its answers: plain data.

A module of its own because planner and actuator share these classes, and nothing else.
"""

from dataclasses import dataclass

from kfp_placement_engine.contract.placement import ConditionReason
from kfp_placement_engine.model.keys import RunKey


@dataclass(frozen=True)
class AskPackage:
    """Action that asks KFP's API for the package of a run; the answer may take seconds.

    Attributes:
        run: key of the run; the package must be that of a run of its namespace.
        uid: uid of the run's object.
        package_id: id of the run at KFP's API.
    """

    run: RunKey
    uid: str
    package_id: str


@dataclass(frozen=True)
class PackageAnswer:
    """Answer of KFP's API to one question.

    Attributes:
        question: question that is answered.
        reason: `READ`, or the cause why there is no package.
        package: JSON of the pipeline's specification; b"" = there is none.
        why: sentence about the cause; "" = `reason` says everything.
    """

    question: AskPackage
    reason: ConditionReason
    package: bytes = b""
    why: str = ""
