"""Workflows that need 3 CPU, and are written so that it is hard to see."""

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from kfp_placement_engine.readers.argo.workflow_nodes import node_id
from kfp_placement_kube.kinds import JsonObject
from tests.controlplane.argo import small_workflows
from tests.controlplane.argo.small_workflows import arguments, dag, task
from tests.controlplane.kubelet.workload import HINTS

LONG_S = "\N{LATIN SMALL LETTER LONG S}"
"""Letter that Go takes for an `s` where it compares names of fields."""

NEEDED_CPU = "3"


class HiddenDemand(NamedTuple):
    """A Workflow.

    Attributes:
        templates: its templates, the entrypoint first.
        spec: the rest of its spec.
    """

    templates: Sequence[JsonObject]
    spec: Mapping[str, Any] = MappingProxyType({})


def work(cpu: str = "100m", seconds: float = 0.1, name: str = "work", **fields: Any) -> JsonObject:
    """A template whose pod takes so long."""
    made: JsonObject = small_workflows.step(name, **fields)
    made["container"]["resources"] = {"requests": {"cpu": cpu}}
    return {**made, "metadata": {"annotations": {HINTS: f'{{"duration": "{seconds}s"}}'}}}


def of_main(**fields: Any) -> str:
    """A patch of the main container."""
    return json.dumps({"containers": [{"name": "main", **fields}]}, ensure_ascii=False)


def requests(cpu: str) -> str:
    """A patch by which the main container requests this amount."""
    return of_main(resources={"requests": {"cpu": cpu}})


def _steps(**fields: Any) -> JsonObject:
    """A template of one step."""
    return {"name": "main", "steps": [[{"name": "a", "template": "work", **fields}]]}


def _with_limit(patch: str) -> JsonObject:
    """A template whose pod requests its limit, once the patch has taken its request away."""
    made = work(podSpecPatch=patch)
    made["container"]["resources"]["limits"] = {"cpu": NEEDED_CPU}
    return made


_BIG = work(NEEDED_CPU, name="big")
_PARAMETER = {"parameters": [{"name": "v"}]}
_BY_INPUT = work(inputs=_PARAMETER, podSpecPatch=requests("{{inputs.parameters.v}}"))
_FROM_CONFIG_MAP = {
    "parameters": [
        {"name": "v", "value": "100m", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}
    ]
}
_LATER = "{{=asInt(retries) < 1 ? '100m' : '3'}}"
_THIRTY = {"count": "30"}
_NAMED = {"parameters": [{"name": "x", "valueFrom": {"supplied": {}}}]}
WAIT: JsonObject = {"name": "w", "suspend": {}, "outputs": _NAMED}
"""A pause, after which whoever resumes the run supplies a value."""
ANSWER = "{{tasks.w.outputs.parameters.x}}"
_ONE = work("900m", name="one")
_BESIDE = [f"b{n}" for n in range(8)]
_NOTED = {"workflowMetadata": {"annotations": {"go": "100m", "all": "[]"}}}


def _if_answered(name: str) -> JsonObject:
    """A task that runs for one answer, or for all if the answer is written so."""
    return task(name, "one", depends="w", when=f"'{ANSWER}' == '{name}'")


def _one_after_each(before: Iterable[JsonObject]) -> HiddenDemand:
    """Steps that nothing orders but how long each of these templates takes before them."""
    templates = [*before]
    first = [task(each["name"], each["name"]) for each in templates]
    then = [task(f"{each['name']}-b", "one", depends=each["name"]) for each in templates]
    return HiddenDemand([dag("main", *first, *then), *templates, _ONE])


HIDDEN: Mapping[str, HiddenDemand] = {
    # Fields that Go finds without regard to case.
    "patch-resources": HiddenDemand(
        [work(podSpecPatch=of_main(**{f"re{LONG_S}ources": {"requests": {"cpu": NEEDED_CPU}}}))]
    ),
    "patch-requests": HiddenDemand(
        [work(podSpecPatch=of_main(resources={"Requests": {"cpu": NEEDED_CPU}}))]
    ),
    "step-items": HiddenDemand([_steps(**{f"withItem{LONG_S}": [*range(30)]}), work()]),
    "step-sequence": HiddenDemand([_steps(**{f"with{LONG_S}equence": _THIRTY}), work()]),
    "step-start": HiddenDemand(
        [_steps(withSequence={"start": "29", "end": "29", f"{LONG_S}tart": "0"}), work()]
    ),
    "step-hooks": HiddenDemand(
        [_steps(**{f"hook{LONG_S}": {"exit": {"template": "big"}}}), work(), _BIG]
    ),
    "step-arguments": HiddenDemand(
        [
            _steps(arguments={**arguments(v="100m"), "Parameters": arguments(v="3")["parameters"]}),
            _BY_INPUT,
        ]
    ),
    # Values that are not those beside which they stand, or come later.
    "request-removed": HiddenDemand([_with_limit(of_main(resources={"requests": None}))]),
    "request-replaced": HiddenDemand(
        [_with_limit(of_main(resources={"$patch": "replace", "limits": {"cpu": NEEDED_CPU}}))]
    ),
    "config-map": HiddenDemand(
        [
            dag("main", task("a")),
            work(inputs=_FROM_CONFIG_MAP, podSpecPatch=requests("{{inputs.parameters.v}}")),
        ]
    ),
    "later-attempt": HiddenDemand(
        [work(podSpecPatch=requests(_LATER), retryStrategy={"limit": 2})]
    ),
    "run-time": HiddenDemand([work(podSpecPatch=requests("{{workflow.creationTimestamp.d}}"))]),
    # Pods beside those of the plan.
    "after-failure": HiddenDemand(
        [dag("main", task("a"), task("b", "big", depends="a.Failed")), work(), _BIG]
    ),
    "exit-after-failure": HiddenDemand(
        [work(), dag("exit", task("b", "big", when="{{workflow.status}} == Failed")), _BIG],
        {"onExit": "exit"},
    ),
    "daemons": HiddenDemand(
        [
            dag("main", *(task(f"d{n}", depends=f"d{n - 1}" if n else "") for n in range(4))),
            work("900m", daemon=True),
        ]
    ),
    "former-mutex": HiddenDemand(
        [_steps(withSequence=_THIRTY), work(synchronization={"mutex": {"name": "m"}})]
    ),
    "agent": HiddenDemand(
        [{"name": "call", "http": {"url": "http://x"}}], {"podSpecPatch": requests(NEEDED_CPU)}
    ),
    # More pods at once than by the plan, by what is known only later.
    "exclusive": HiddenDemand(
        [dag("main", task("w", "w"), *map(_if_answered, _BESIDE)), WAIT, _ONE],
    ),
    "pauses": _one_after_each(
        {"name": f"{name}-p", "suspend": {"duration": f"{100 * number}s"}}
        for number, name in enumerate(_BESIDE)
    ),
    "run-times": _one_after_each(
        work("10m", 100.0 * number, f"{name}-p") for number, name in enumerate(_BESIDE)
    ),
    "loop": HiddenDemand(
        [
            dag("main", task("w", "w"), task("all", depends="w", withParam=ANSWER)),
            WAIT,
            work(),
        ]
    ),
    "annotation": HiddenDemand(
        [dag("main", task("a", arguments=arguments(v="{{workflow.annotations.go}}"))), _BY_INPUT],
        _NOTED,
    ),
    "annotated-loop": HiddenDemand(
        [
            dag("main", task("a"), task("b", "big", withParam="{{workflow.annotations.all}}")),
            work(),
            _BIG,
        ],
        _NOTED,
    ),
    "annotated-condition": HiddenDemand(
        [
            dag("main", task("a"), task("b", "big", when="{{workflow.annotations.go}} == yes")),
            work(),
            _BIG,
        ],
        _NOTED,
    ),
    "sidecar": HiddenDemand([work(sidecars=[{**_BIG["container"], "name": "beside"}])]),
    "defaults": HiddenDemand([work()], {"templateDefaults": {"podSpecPatch": requests("3")}}),
    "set": HiddenDemand(
        [{"name": "set", "containerSet": {"containers": [{**_BIG["container"], "name": "main"}]}}]
    ),
    "inline": HiddenDemand([dag("main", {"name": "a", "inline": {**_BIG, "name": ""}})]),
    "recursion": HiddenDemand([dag("main", task("a"), task("again", "main")), work()]),
}


def _node(name: str, phase: str = "Succeeded", kind: str = "Pod", **fields: Any) -> JsonObject:
    """A node that Argo would find; names of Workflows are those of their attacks."""
    own_id = node_id(name.partition(".")[0].partition("(")[0], name)
    times = {"startedAt": "2026-01-05T08:00:00Z", "finishedAt": "2026-01-05T08:00:01Z"}
    return {"id": own_id, "name": name, "type": kind, "phase": phase, **times, **fields}


def _by_id(*nodes: JsonObject) -> JsonObject:
    return {each["id"]: each for each in nodes}


_OF_DAG = HiddenDemand([dag("main", task("a", "big")), _BIG])
_RETRIED = HiddenDemand([work(NEEDED_CPU, retryStrategy={"limit": 1})])
_ALONE = HiddenDemand([work(NEEDED_CPU)])

FORGED: Mapping[str, tuple[HiddenDemand, JsonObject]] = {
    "other-key": (_ALONE, {"x": {**_node("other-key"), "id": "x"}}),
    "other-id": (_ALONE, {"other-id": {**_node("other-id"), "id": "x"}}),
    "key-alone": (_ALONE, {"x": _node("key-alone")}),
    "of-dag": (_OF_DAG, {"x": {**_node("of-dag.a"), "id": "x"}}),
    "other-case": (_ALONE, _by_id(_node("other-case", "succeeded"))),
    "no-results": (_ALONE, _by_id({**_node("no-results", taskResultSynced=False)})),
    "dag-no-results": (
        _OF_DAG,
        _by_id(_node("dag-no-results", kind="DAG", taskResultSynced=False)),
    ),
    "attempt": (_RETRIED, _by_id(_node("attempt(0)"))),
    "attempt-skipped": (
        _RETRIED,
        _by_id(
            _node("attempt-skipped(0)", "Skipped"), _node("attempt-skipped", "Running", "Retry")
        ),
    ),
    "exit-left": (
        HiddenDemand([work(), _BIG], {"onExit": "big"}),
        _by_id(_node("exit-left")),
    ),
}
"""Nodes with which Workflows are created, as if what needs 3 CPU had ended; Argo runs it."""

_SUPPLIED = "{{tasks.pause.outputs.parameters.v}}"
_PAUSE = {
    "name": "pause",
    "suspend": {"duration": "600"},
    "outputs": {"parameters": [{"name": "v", "valueFrom": {"supplied": {}}}]},
}
_MOST = work("900m", name="most", seconds=2.0)
_BRANCHES = [
    task(f"b{number}", "most", depends="pause", when=f"'{_SUPPLIED}' == '{number}'")
    for number in range(3)
]
_PAUSES = [
    each
    for number in range(3)
    for each in (
        task(f"p{number}", f"pause{number}"),
        task(f"b{number}", "most", depends=f"p{number}"),
    )
]

TAKES_MORE: Mapping[str, tuple[HiddenDemand, JsonObject]] = {
    "branches": (
        HiddenDemand([dag("main", task("pause", "pause"), *_BRANCHES), _PAUSE, _MOST]),
        {"parameters": [{"name": "v", "value": "z' != 'y' || 'a", "valueFrom": {"supplied": {}}}]},
    ),
    "loop": (
        HiddenDemand(
            [
                dag(
                    "main",
                    task("pause", "pause"),
                    task("all", "most", depends="pause", withParam=_SUPPLIED),
                ),
                _PAUSE,
                _MOST,
            ]
        ),
        {"parameters": [{"name": "v", "value": "[1,2,3,4,5]", "valueFrom": {"supplied": {}}}]},
    ),
    "pauses": (
        HiddenDemand(
            [
                dag("main", *_PAUSES),
                *[
                    {"name": f"pause{number}", "suspend": {"duration": f"{100 * (number + 1)}"}}
                    for number in range(3)
                ],
                _MOST,
            ]
        ),
        {},
    ),
}
"""Workflows, and what is supplied to their pauses: then they need more at once than could be known.

Each has at least three pods of 900m at a time.
"""
