"""What kube-scheduler and the API server ask of the extender: recorded, made up, and malformed."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.comparison.objects import JsonObject
from tests.comparison.stored import ARGO, TAXI

NODES = ("worker-1", "worker-2", "gpu-1", "drained", "unheard-of")
RANDOM_PODS = 60
"""As many again are offered fewer nodes."""


class Question(NamedTuple):
    """A request.

    Attributes:
        name: of its case.
        path: where it is sent.
        body: what is sent.
    """

    name: str
    path: str
    body: bytes


def of_the_scheduler() -> Iterator[Question]:
    """Questions of kube-scheduler, each about the nodes that remain and about their points."""
    recorded = Path("data/labelled/extender/filter-taxi-predict.json").read_bytes()
    yield from _both("recorded", recorded)
    for path in sorted(Path("data/labelled/recordings").glob("*.json")):
        for number, pod in enumerate(json.loads(path.read_text("utf-8"))["pods"]):
            pod["metadata"].pop("uid", None)
            yield from _both(f"argo/{path.stem}-{number}", _asked(pod, NODES))
    source = random.Random(1)
    for number in range(RANDOM_PODS):
        pod = _random_pod(source)
        some = source.sample(NODES, source.randint(0, len(NODES)))
        yield from _both(f"random/{number}", _asked(pod, NODES))
        yield from _both(f"random/{number}-of-some", _asked(pod, some))
    for name, body in _MALFORMED.items():
        yield from _both(f"malformed/{name}", body)


def of_the_api_server() -> Iterator[Question]:
    """Reviews of new pods."""
    for name, pod in _ADMITTED.items():
        for where in ("team-a", "kube-system", "kfp-placement"):
            request = {"uid": "u1", "namespace": where, "object": pod}
            body = json.dumps({"kind": "AdmissionReview", "request": request}).encode()
            yield Question(f"admission/{name}.{where}", "/mutate", body)
    for name, body in _MALFORMED.items():
        yield Question(f"admission/malformed/{name}", "/mutate", body)


def _both(name: str, body: bytes) -> Iterator[Question]:
    for verb in ("filter", "prioritize"):
        yield Question(f"{name}.{verb}", f"/scheduler/{verb}", body)


def _asked(pod: JsonObject, nodes: Sequence[str]) -> bytes:
    return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": list(nodes)}).encode()


def _random_pod(source: random.Random) -> JsonObject:
    """A pod that nobody binds: without an identity, so that no answer depends on an earlier one."""
    step = source.choice(["fetch", "train", "predict", "unheard-of"])
    run = source.choice([TAXI, TAXI, TAXI, "other"])
    labels = {f"{ARGO}/workflow": run, "kfp-placement.dev/scheduler": "kfp-placement"}
    if source.random() < 0.5:
        labels["typeOfComponent"] = source.choice(["Predict", "Training"])
        labels["OurLocation"] = source.choice(["HOME-EDGE", "NITLAB-EDGE", "NOWHERE"])
    annotations = {f"{ARGO}/node-name": f"{run}(0).root(0).{step}(0).executor(0)"}
    if source.random() < 0.4:
        limit = source.choice(["5ms", "20ms", "60ms", "1us", "soon"])
        annotations["kfp-placement.dev/hints"] = json.dumps({"v": 1, "maxLatency": limit})
    requests = {"cpu": source.choice(["100m", "1", "3", "9"]), "memory": "1Gi"}
    claims = source.sample(["data", "models", "lost"], source.choice([0, 0, 0, 1, 2]))
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    return {
        "metadata": {
            "name": "asked",
            "namespace": "team-a",
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {
            "schedulerName": "kfp-placement",
            "volumes": volumes,
            "containers": [{"name": "main", "resources": {"requests": requests}}],
        },
    }


_MALFORMED = {
    "empty": b"",
    "cut": b"{",
    "list": b"[]",
    "null": b"null",
    "no-utf8": b"\xff",
    "nothing": b"{}",
    "no-names": json.dumps({"Pod": {}, "NodeNames": None}).encode(),
    "text-as-names": json.dumps({"Pod": {}, "NodeNames": "a"}).encode(),
    "odd-metadata": json.dumps({"Pod": {"metadata": []}, "NodeNames": ["worker-1"]}).encode(),
    "odd-spec": json.dumps({"Pod": {"spec": []}, "NodeNames": ["worker-1"]}).encode(),
    "lower-case": json.dumps({"pod": {}, "nodenames": ["worker-1"]}).encode(),
    "request": b'{"request": 1}',
    "no-uid": json.dumps({"request": {"uid": "", "object": {}}}).encode(),
    "odd-object": json.dumps({"request": {"uid": "u", "object": 3}}).encode(),
    "odd-pod": json.dumps({"request": {"uid": "u", "object": {"metadata": []}}}).encode(),
}

_MARK = {"kfp-placement.dev/scheduler": "kfp-placement"}


def _new(labels: Mapping[str, str], **spec: Any) -> JsonObject:
    return {
        "metadata": {"name": "new", "labels": dict(labels)},
        "spec": {"containers": [{"name": "main", "image": "busybox:1"}], **spec},
    }


_ADMITTED = {
    "marked": _new(_MARK),
    "marked-in-words": _new(_MARK, schedulerName="default-scheduler"),
    "not-marked": _new({}),
    "mark-empty": _new({"kfp-placement.dev/scheduler": ""}),
    "mark-not-allowed": _new({"kfp-placement.dev/scheduler": "somebody-else"}),
    "mark-asks-for-stock": _new({"kfp-placement.dev/scheduler": "default-scheduler"}),
    "has-a-scheduler": _new(_MARK, schedulerName="volcano"),
    "has-a-node": _new(_MARK, nodeName="worker-1"),
    "has-gates": _new(_MARK, schedulingGates=[{"name": "example.com/other"}]),
    "has-our-gate": _new(_MARK, schedulingGates=[{"name": "kfp-placement.dev/plan"}]),
}
