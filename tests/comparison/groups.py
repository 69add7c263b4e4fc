"""The groups of cases, by the door through which they ask."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    """Cases that are collected together.

    Attributes:
        collector: module and function that ask.
        title: what is compared.
        shares: processes that its cases can be dealt out to.
        frozen: the time of day stands still.
        leaves_out: what is not compared, and why.
    """

    collector: str
    title: str
    shares: int = 1
    frozen: bool = True
    leaves_out: tuple[str, ...] = ()


_HYPOTHESIS = (
    "examples that Hypothesis draws: they depend on all modules that are imported",
    "tests on a control plane: their objects bear real times",
)

GROUPS = {
    "plan": Group("plans:collect", "`plan` of all runs, and its options", shares=2),
    "check": Group("checks:collect_check", "`check` of all runs", shares=2),
    "modules": Group("checks:collect_modules", "`plan` of pipelines in Python"),
    "inputs": Group("plans:collect_inputs", "what `plan` and `check` refuse, and stdin"),
    "others": Group("checks:collect_others", "`cluster`, `demo`, other ruled types"),
    "help": Group("checks:collect_help", "help, versions, completion"),
    "live": Group("live:collect_situations", "`list`, `explain` in many situations"),
    "played": Group("live:collect_played", "`list`, `explain`, `watch` of runs that tests played"),
    "changes": Group("live:collect_changes", "`watch`, `release`, `--cluster live`"),
    "extend": Group(
        "processes:collect",
        "answers of the process `extend`",
        frozen=False,
        leaves_out=("the process `plan`: its searches end by time; the scenarios play its core",),
    ),
    "controller": Group(
        "recorded:collect_controller",
        "played scenarios, as the trees' own tests see them",
        leaves_out=_HYPOTHESIS,
    ),
    "commands": Group(
        "recorded:collect_commands",
        "command lines of the trees' own tests",
        leaves_out=_HYPOTHESIS,
    ),
    "files": Group("rendered:collect", "`deploy`, kinds, schemas, samples"),
}
