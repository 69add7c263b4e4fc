"""`check`, `cluster`, `demo`, latency-ruled types of a policy, and what help and completion say."""

import shlex

from tests.comparison.cases import CaseFolder
from tests.comparison.command_line import run
from tests.comparison.inputs import CLUSTERS, OTHER_RULES, modules, runs
from tests.comparison.plans import FORMATS, TAXI

COMMANDS = ("plan", "check", "cluster", "list", "explain", "watch", "release", "demo")
PROCESSES = ("plan", "extend", "release")
COMPLETED = (
    "",
    "pl",
    "plan --o",
    "plan --objective ",
    "plan --compare kube-default,",
    "plan -o ",
    "list -",
    "completion ",
    "explain -o w",
)


def collect_check(cases: CaseFolder) -> None:
    """Every run without a cluster and on each."""
    for each in (*runs(), *modules()):
        if not cases.mine():
            continue
        _ask(cases, each.name, "check", each.path)
        _ask(cases, f"{each.name}.json", "check", each.path, "-c", CLUSTERS["uneven"], "-o", "json")
        for cluster in ("thesis", "dump"):
            _ask(cases, f"{each.name}.{cluster}", "check", each.path, "-c", CLUSTERS[cluster])


def collect_modules(cases: CaseFolder) -> None:
    """`plan` of pipelines in Python, which kfp compiles."""
    for each in modules():
        for cluster, file in CLUSTERS.items():
            arguments = ["plan", each.path, "-c", file, "--generations", str(each.generations)]
            _ask(cases, f"{each.name}.{cluster}", *arguments)
    _ask(cases, "arguments", "check", "pipelines.py:small", "--arg", "rows=x")


def collect_others(cases: CaseFolder) -> None:
    """`cluster`, `demo`, and runs on clusters whose policy has other types follow a location."""
    for name, file in CLUSTERS.items():
        _ask(cases, f"cluster/{name}", "cluster", file)
    for name, more in {"demo": [], "demo-seed": ["--seed", "3"]}.items():
        arguments = ["demo", "taxi", *more, "--output", "taxi.html"]
        done = run("kfp-placement", arguments, files=["taxi.html"])
        cases.command(name, "kfp-placement", arguments, done)
    for cluster, file in OTHER_RULES.items():
        for name, path in {"taxi": TAXI, "scoring": "scoring.py:scoring"}.items():
            _ask(cases, f"{name}.{cluster}.check", "check", path, "-c", file)
            for wanted in (*FORMATS, "wide"):
                arguments = ["plan", path, "-c", file, "--generations", "30", "-o", wanted]
                _ask(cases, f"{name}.{cluster}.{wanted}", *arguments)


def collect_help(cases: CaseFolder) -> None:
    """Help of all commands at several widths, versions, and what a shell completes."""
    for columns in ("60", "80", "100", "160"):
        for command in ("", *COMMANDS, "completion"):
            arguments = [*command.split(), "--help"]
            done = run("kfp-placement", arguments, environment={"COLUMNS": columns})
            name = f"{columns}/{command or 'all'}"
            cases.command(name, f"COLUMNS={columns} kfp-placement", arguments, done)
        for process in ("", *PROCESSES):
            arguments = [*process.split(), "--help"]
            done = run("kfp-placement-controller", arguments, environment={"COLUMNS": columns})
            name = f"{columns}/controller-{process}"
            cases.command(name, f"COLUMNS={columns} kfp-placement-controller", arguments, done)
    _ask(cases, "version", "--version")
    for shell in ("bash", "zsh", "fish", "csh"):
        _ask(cases, f"completion-{shell}", "completion", shell)
    for number, line in enumerate(COMPLETED):
        words = f"kfp-placement {line}"
        variables = {
            "_KFP_PLACEMENT_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(shlex.split(words)) - (not words.endswith(" "))),
        }
        done = run("kfp-placement", [], environment=variables)
        cases.command(f"completed-{number}", f"{words!r} and TAB:", [], done)
    for name, arguments in _CONTROLLER.items():
        done = run("kfp-placement-controller", arguments)
        cases.command(f"controller/{name}", "kfp-placement-controller", arguments, done)


def _ask(cases: CaseFolder, name: str, *arguments: str) -> None:
    cases.command(name, "kfp-placement", arguments, run("kfp-placement", arguments))


_CONTROLLER = {
    "version": ["--version"],
    "nothing": [],
    "unknown": ["paln"],
    "level": ["plan", "--log-level", "loud"],
    "port": ["extend", "--extender-port", "many"],
    "port-too-large": ["extend", "--probe-port", "70000"],
    "no-kubeconfig": ["plan", "--kubeconfig", "none.yaml"],
    "bad-kubeconfig": ["extend", "--kubeconfig", "durations.yaml"],
    "no-pod": ["release"],
}
