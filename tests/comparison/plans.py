"""`plan` of everything there is to plan, on three clusters, and with its options."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from tests.comparison.cases import CaseFolder
from tests.comparison.command_line import run
from tests.comparison.inputs import CLUSTERS, Run, runs

FORMATS = ("json", "table", "html")

TAXI = "data/labelled/pipelines/taxi.yaml"
FAN_OUT = "data/labelled/pipelines/fan_out.yaml"
CONTROL_FLOW = "data/labelled/workflows/control_flow.yaml"
SHARED_VOLUME = "data/labelled/workflows/shared_volume.yaml"
LOOPS = "data/kfp-2.17.0/workflows/pipeline_with_loops.yaml"
GENOME = "data/wfinstances/1000genome-chameleon-2ch-100k-001.json"


def collect(cases: CaseFolder) -> None:
    """Every run on every cluster in every format, then the options."""
    for each in runs():
        for cluster in CLUSTERS:
            if cases.mine():
                for wanted in FORMATS:
                    _plan(
                        cases, f"{each.name}.{cluster}.{wanted}", _arguments(each, cluster, wanted)
                    )
    for name, arguments in options():
        if cases.mine():
            _plan(cases, f"options/{name}", arguments)


def _arguments(each: Run, cluster: str, wanted: str) -> list[str]:
    generations = ["--generations", str(each.generations)]
    return [each.path, "--cluster", CLUSTERS[cluster], *generations, "-o", wanted]


def _plan(cases: CaseFolder, name: str, arguments: Sequence[str], stdin: bytes = b"") -> None:
    done = run("kfp-placement", ["plan", *arguments], stdin=stdin, files=_written(arguments))
    cases.command(name, "kfp-placement plan", arguments, done)


def _written(arguments: Sequence[str]) -> list[str]:
    return [value for option, value in pairwise(arguments) if option == "--output"]


def options() -> Iterator[tuple[str, list[str]]]:
    """Name and arguments of cases in which options matter."""
    planned = {"taxi": TAXI, "fan-out": FAN_OUT, "flow": CONTROL_FLOW, "volume": SHARED_VOLUME}
    for name, path in {**planned, "loops": LOOPS, "genome": GENOME}.items():
        for cluster, file in CLUSTERS.items():
            base = [path, "-c", file, "--generations", "20"]
            for option, values in _VALUES.items():
                for value in values:
                    yield f"{name}.{cluster}.{option}={value}", [*base, f"--{option}", value]
            yield f"{name}.{cluster}.marked-only", [*base, "--marked-only"]
            yield f"{name}.{cluster}.marked-only.json", [*base, "--marked-only", "-o", "json"]
            yield f"{name}.{cluster}.yaml", [*base, "-o", "yaml"]
            for dispatch in ("ready", "ordered"):
                for objective in ("completion", "paper", "packing"):
                    both = ["--dispatch", dispatch, "--objective", objective, "-o", "wide"]
                    yield f"{name}.{cluster}.{dispatch}-{objective}", [*base, *both]
    for name, more in _ON_TAXI.items():
        yield f"taxi.{name}", [TAXI, "-c", CLUSTERS["thesis"], "--generations", "20", *more]
    for name, more in _ON_FAN_OUT.items():
        yield f"fan-out.{name}", [FAN_OUT, "-c", CLUSTERS["uneven"], "--generations", "20", *more]


_VALUES = {
    "seed": ("1", "7"),
    "generations": ("0", "1", "60"),
    "compare": ("none", "fifo,random", "kube-default,heft,fifo,random"),
    "kube-version": ("1.30", "v1.34.2"),
    "namespace": ("team-a",),
    "output": ("plan.html", "plan.yml", "plan.txt"),
}

_ON_TAXI = {
    "wide": ["-o", "wide"],
    "brute-force": ["--compare", "brute-force"],
    "brute-force.json": ["--compare", "brute-force,kube-default", "-o", "json"],
    "argument": ["--arg", "rows=5000", "--arg", "rounds=7"],
    "argument-unknown": ["--arg", "rwos=5"],
    "argument-wrong": ["--arg", "rows=many"],
    "argument-without-value": ["--arg", "rows"],
    "duration": ["--duration", "train=1h30m", "--duration", "fetch=500ms", "-o", "wide"],
    "duration-unknown": ["--duration", "trian=1h"],
    "duration-wrong": ["--duration", "train=soon"],
    "durations": ["--durations", "durations.yaml", "-o", "json"],
    "durations-unknown": ["--durations", "bad/durations.yaml"],
    "durations-missing": ["--durations", "none.yaml"],
    "cached": ["--assume-cached", "fetch-2", "-o", "wide"],
    "cached-unknown": ["--assume-cached", "nothing"],
    "loop-unknown": ["--loop-width", "for-loop-1=5"],
    "namespace-wrong": ["--namespace", "Team_A"],
    "seed-wrong": ["--seed", "-1"],
    "generations-wrong": ["--generations", "many"],
    "objective-wrong": ["--objective", "cheap"],
    "dispatch-wrong": ["--dispatch", "now"],
    "compare-wrong": ["--compare", "slurm"],
    "kube-version-old": ["--kube-version", "1.9"],
    "kube-version-wrong": ["--kube-version", "new"],
    "format-wrong": ["-o", "pdf"],
    "output-no-folder": ["--output", "no/such/folder/plan.json"],
    "output-and-format": ["--output", "plan.json", "-o", "table"],
    "option-unknown": ["--clutser", "x"],
    "budget-wrong": ["--budget", "-2s"],
    "two-runs": ["another.yaml"],
}

_ON_FAN_OUT = {
    "loop-width": ["--loop-width", "for-loop-2=7", "-o", "wide"],
    "loop-width-of-all": ["--loop-width", "for-loop-4=1", "--loop-width", "for-loop-2=2"],
    "loop-width-zero": ["--loop-width", "for-loop-4=0"],
    "loop-width-wrong": ["--loop-width", "for-loop-4=many"],
    "count": ["--arg", "count=9", "-o", "json"],
    "cached": ["--assume-cached", "shard", "-o", "wide"],
}


def collect_inputs(cases: CaseFolder) -> None:
    """What `plan` and `check` say of files that they cannot use, and of what comes by stdin."""
    thesis = CLUSTERS["thesis"]
    for path in sorted(Path("bad/runs").iterdir()):
        for command in ("plan", "check"):
            arguments = [command, str(path), "-c", thesis]
            cases.command(f"run/{path.name}.{command}", "kfp-placement", arguments, _run(arguments))
    for path in sorted(Path("bad/clusters").iterdir()):
        for command in ("plan", "check"):
            arguments = [command, TAXI, "-c", str(path)]
            name = f"cluster/{path.name}.{command}"
            cases.command(name, "kfp-placement", arguments, _run(arguments))
        arguments = ["cluster", str(path)]
        cases.command(f"cluster/{path.name}", "kfp-placement", arguments, _run(arguments))
    for name, arguments in _ODD.items():
        cases.command(f"odd/{name}", "kfp-placement", arguments, _run(arguments))
    for name, arguments, file in _TYPED:
        done = _run(arguments, Path(file).read_bytes())
        cases.command(f"stdin/{name}", "kfp-placement", arguments, done)


def _run(arguments: Sequence[str], stdin: bytes = b""):
    return run("kfp-placement", arguments, stdin=stdin, files=_written(arguments))


_THESIS = ["-c", "clusters/thesis.yaml", "--generations", "5"]

_ODD = {
    "no-file": ["plan", "none.yaml", *_THESIS],
    "no-cluster-file": ["plan", TAXI, "-c", "none.yaml"],
    "no-cluster": ["plan", TAXI],
    "no-run": ["plan", *_THESIS],
    "a-folder": ["plan", "data", *_THESIS],
    "cluster-a-folder": ["plan", TAXI, "-c", "data"],
    "run-as-cluster": ["plan", TAXI, "-c", FAN_OUT],
    "cluster-as-run": ["plan", "clusters/uneven.yaml", *_THESIS],
    "psplib": ["plan", "data/psplib-j30/j301_1.sm", *_THESIS],
    "openb": ["plan", "data/openb/openb_pod_list_default.csv", *_THESIS],
    "openb-as-cluster": ["plan", TAXI, "-c", "data/openb/openb_node_list_gpu_node.csv"],
    "recording": ["plan", "data/labelled/recordings/taxi.json", *_THESIS],
    "module-unknown": ["plan", "nothing_of_that_name:taxi", *_THESIS],
    "module-without": ["plan", "pipelines.py:none", *_THESIS],
    "module-no-pipeline": ["plan", "pipelines.py:number", *_THESIS],
    "module-unnamed": ["plan", "pipelines.py", *_THESIS],
    "module-raises": ["check", "raising.py:taxi"],
    "a-word": ["check", "mypipe"],
    "unprintable": ["check", "\x1b]0;x\x07.yaml"],
    "no-command": [],
    "command-unknown": ["pln"],
    "check-nothing": ["check"],
    "check-format": ["check", TAXI, "-o", "html"],
    "cluster-missing": ["cluster", "none.yaml"],
    "cluster-written": ["cluster", "clusters/dump.yaml", "--output", "cluster.yaml"],
    "demo-to-nowhere": ["demo", "--output", "no/such/folder/x.html"],
}

_TYPED = (
    ("run", ["plan", "-", *_THESIS], TAXI),
    ("cluster", ["plan", TAXI, "-c", "-", "--generations", "5"], "clusters/dump.yaml"),
    ("both", ["plan", "-", "-c", "-"], TAXI),
    ("check", ["check", "-"], CONTROL_FLOW),
    ("dump", ["cluster", "-"], "clusters/dump.yaml"),
    ("nothing", ["plan", "-", *_THESIS], "/dev/null"),
)
