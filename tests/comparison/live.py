"""`list`, `explain`, `watch`, `release` and `--cluster live` on stored objects."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.comparison import stored
from tests.comparison.api_server import ApiServer, Change
from tests.comparison.cases import CaseFolder
from tests.comparison.command_line import run
from tests.comparison.objects import JsonObject, Store
from tests.comparison.situations import SITUATIONS
from tests.comparison.stored import MINE, THEIRS, played_runs, pod, policy, taxi

KUBECONFIG = "kubeconfig.json"
FORMATS = ("table", "wide", "json", "yaml")


@dataclass(frozen=True)
class Scene:
    """A cluster in a certain state; the fields are those of the server."""

    objects: Iterable[JsonObject]
    streams: Mapping[str, Sequence[Change]] = field(default_factory=dict)
    refused: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    unserved: Iterable[str] = ()


def ask(
    cases: CaseFolder,
    scene: Scene,
    asked: Mapping[str, Sequence[str]],
    environment: Mapping[str, str] | None = None,
    program: str = "kfp-placement",
) -> None:
    """Commands by the names of their cases, one after the other on one server."""
    store = Store(scene.objects)
    with ApiServer(store, scene.streams, scene.refused, scene.unserved) as server:
        Path(KUBECONFIG).write_text(server.kubeconfig(), "utf-8")
        for name, arguments in asked.items():
            command, *rest = arguments
            given = [command, "--kubeconfig", KUBECONFIG, *rest]
            done = run(program, given, environment=environment, files=["out.html"])
            parts = {"stderr": done.stderr, **done.more}
            if server.writes:
                parts["written"] = "\n".join(server.writes)
                server.writes.clear()
            hidden = {key: text.replace(server.address, "SERVER") for key, text in parts.items()}
            stdout = done.stdout.replace(server.address, "SERVER")
            outcome = type(done)(done.code, stdout, hidden.pop("stderr"), hidden)
            cases.command(name, program, arguments, outcome)


def collect_played(cases: CaseFolder) -> None:
    """`list` and `explain` of the runs that tests played; `watch` of them from plan to end."""
    runs = played_runs()
    last = [run.looks[-1] for run in runs]
    middle = [run.looks[len(run.looks) // 2] for run in runs]
    for title, looks in {"last": last, "middle": middle}.items():
        asked: dict[str, list[str]] = {}
        for wanted in FORMATS:
            asked[f"list/{title}.{wanted}"] = ["list", "-A", "-o", wanted]
            asked[f"list/{title}.team-b.{wanted}"] = ["list", "-n", "team-b", "-o", wanted]
        for played in runs:
            for wanted in FORMATS:
                name = f"explain/{title}/{played.name}.{wanted}"
                asked[name] = ["explain", played.name, "-o", wanted]
            for step in _steps(played.looks[-1]):
                name = f"explain/{title}/{played.name}.step.{step}"
                asked[name] = ["explain", played.name, step]
        ask(cases, Scene(looks), asked)
    for columns in ("60", "90", "200"):
        asked = {
            f"list/{columns}": ["list", "-A"],
            f"list/{columns}-wide": ["list", "-A", "-o", "wide"],
        }
        asked |= {
            f"explain/{columns}/{played.name}": ["explain", played.name] for played in runs[::5]
        }
        ask(cases, Scene(middle), asked, {"COLUMNS": columns})
    for played in runs:
        if played.looks[-1].get("status", {}).get("phase") in ("Succeeded", "Failed", "Refused"):
            changes = [("MODIFIED", look) for look in played.looks[1:]]
            scene = Scene(played.looks[:1], streams={"pipelineplacements": changes})
            ask(cases, scene, {f"watch/{played.name}": ["watch", played.name]})


def _steps(look: JsonObject) -> list[str]:
    """The first and the last that is planned."""
    names = [row[0] for row in look["spec"].get("steps", []) if row]
    return list(dict.fromkeys([*names[:1], *names[-1:]]))


def collect_situations(cases: CaseFolder) -> None:
    """The sample's run in many situations."""
    for title, situation in SITUATIONS.items():
        asked: dict[str, Sequence[str]] = {}
        for wanted in FORMATS:
            asked[f"{title}/list.{wanted}"] = ["list", "-A", "-o", wanted]
            asked[f"{title}/explain.{wanted}"] = ["explain", stored.TAXI, "-o", wanted]
        for step in ("fetch", "train", "predict", "trian"):
            asked[f"{title}/explain.{step}"] = ["explain", stored.TAXI, step]
        asked[f"{title}/list"] = ["list"]
        asked |= {f"{title}/{' '.join(more)}": more for more in situation.more}
        scene = Scene(situation.objects, {}, situation.refused, situation.unserved)
        ask(cases, scene, asked)


def collect_changes(cases: CaseFolder) -> None:
    """`watch` of scripted changes, `release` with what it writes, and `--cluster live`."""
    for title, (start, changes, more) in _WATCHED.items():
        scene = Scene(start, streams={"pipelineplacements": changes})
        ask(cases, scene, {f"watch/{title}": ["watch", stored.TAXI, *more]})
    for title, (spec, commands) in _RELEASED.items():
        numbered = enumerate(commands)
        asked = {f"release/{title}.{number}": ["release", *each] for number, each in numbered}
        ask(cases, Scene([*_held(), policy(spec)]), asked)
        asked = {f"release/{title}.controller": ["release"]}
        asked[f"release/{title}.controller-again"] = ["release", "--dry-run"]
        ask(cases, Scene([*_held(), policy(spec)]), asked, program="kfp-placement-controller")
    ask(cases, Scene(_held()), {"release/no-policy": ["release"], "release/again": ["release"]})
    nothing = Scene([], unserved=["placementpolicies", "pipelineplacements", "locations"])
    ask(cases, nothing, {"release/not-installed": ["release"]})
    for title, objects in _live_clusters().items():
        asked = {f"live/{title}.cluster": ["cluster", "live"]}
        for path in ("taxi", "fan_out", "shared_volume"):
            package = f"data/labelled/workflows/{path}.yaml"
            asked[f"live/{title}.check.{path}"] = ["check", package, "-c", "live"]
            for more in (["-n", "team-a"], ["-o", "json"], ["-o", "wide", "--seed", "3"]):
                arguments = ["plan", package, "-c", "live", "--generations", "20", *more]
                asked[f"live/{title}.{path}.{'-'.join(more)}"] = arguments
        ask(cases, Scene(objects), asked)


def _held() -> list[JsonObject]:
    """Pods that wait at gates, ours and others, some of which nothing frees."""
    by_host = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["no-node-within-1ms"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [by_host]}]}
    near = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return [
        stored.namespace("team-a"),
        stored.namespace("team-b"),
        taxi(),
        taxi("other", namespace="team-b"),
        pod("fetch", node="n1", phase="Running"),
        pod("train", gates=(MINE, THEIRS)),
        pod("predict", gates=(MINE,)),
        pod("far", spec={"affinity": near}),
        pod("other", run="other", where="team-b", gates=(MINE,)),
        pod("foreign", run="foreign", where="team-b", gates=(THEIRS,)),
    ]


_RELEASED: Mapping[str, tuple[Mapping[str, Any], Sequence[Sequence[str]]]] = {
    "all": ({"paused": False}, ((), (), ("--resume",), ("--resume",))),
    "dry": ({}, (("--dry-run",), ("--dry-run", "-A"), ("--resume", "--dry-run"), ())),
    "run": ({"actuator": "gates"}, ((stored.TAXI,), ("team-b/other",), ("nothing",))),
    "paused": ({"paused": True}, (("--resume", "--dry-run"), ("--dry-run",), ("-n", "team-b"))),
    "both": ({}, ((stored.TAXI, "--resume"), ("-n", "team-a", "-A"))),
}


def _live_clusters() -> Mapping[str, list[JsonObject]]:
    strict = {
        "actuator": "gates",
        "objective": "packing",
        "engine": {"seed": 11, "budget": "300ms", "populationSize": 8, "islands": 3},
        "latencyRules": {"stepTypes": ["Predict"], "tolerance": "2ms", "tolerancePercent": 10},
        "defaults": {"driver": "7s", "byType": [{"type": "Predict", "priority": 7}]},
    }
    objects = [stored.namespace("team-a"), *stored.dump_objects()]
    held = [taxi(), pod("train", node="worker-1", phase="Running")]
    return {
        "plain": objects,
        "policy": [*objects, policy(strict)],
        "runs": [*objects, policy(), *held],
    }


def _modified(*looks: JsonObject) -> list[Change]:
    return [("MODIFIED", look) for look in looks]


_STATES = [["succeeded", 0, 10.4, 43.1], ["succeeded", 0, 49, 1251], ["running", 1, 1256]]
_PREDICTING = taxi(status={"progress": "2/3", "steps": _STATES})
_ENDED = taxi(status={"phase": "Succeeded", "progress": "3/3", "makespan": "22m"})
_FAILED = taxi(status={"phase": "Failed", "progress": "2/3"})
_NEW_SPEC = {"revision": 3, "makespan": "24m"}
_WAITS = ["waiting", -1, -1, -1, ["node", 60, -1, "0/3 nodes"]]
_UNSATISFIED = {
    "type": "LatencySatisfied",
    "status": "False",
    "reason": "LatencyRuleUnsatisfied",
    "message": "predict is 30 ms beyond its rule",
    "lastTransitionTime": "2026-11-20T10:00:01Z",
}

_WATCHED: Mapping[str, tuple[list[JsonObject], list[Change], list[str]]] = {
    "to-its-end": ([taxi()], _modified(_PREDICTING, _ENDED), []),
    "fails": ([taxi()], _modified(_PREDICTING, _FAILED), []),
    "refused": ([taxi()], _modified(taxi(status={"phase": "Refused"})), []),
    "ended-before": ([_ENDED], [], []),
    "deleted": ([taxi()], [("DELETED", taxi())], []),
    "replanned": (
        [taxi()],
        _modified(
            taxi(spec=_NEW_SPEC),
            taxi(spec=_NEW_SPEC, status={"revision": 3}),
            taxi(spec=_NEW_SPEC, status={"revision": 3, "phase": "Succeeded"}),
        ),
        [],
    ),
    "waits": (
        [taxi()],
        _modified(
            taxi(status={"steps": [_STATES[0], _WAITS], "conditions": [_UNSATISFIED]}),
            taxi(spec={"nodes": 5}),
            _ENDED,
        ),
        [],
    ),
    "bookmark": ([taxi()], [("BOOKMARK", {"metadata": {}}), *_modified(_ENDED)], []),
    "no-plan-yet": ([stored.workflow(stored.TAXI)], [("ADDED", _ENDED)], []),
    "timeout": ([taxi()], _modified(_PREDICTING), ["--timeout", "1500ms"]),
    "nothing": ([], [], []),
    "two": ([taxi(), taxi(namespace="team-b")], [], ["-A"]),
}
