"""The taxi sample on a control plane: nodes with latency labels, runs made shorter."""

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from kfp_placement_engine.contract.keys import SPEED_LABEL, STORE_BANDWIDTH_LABEL
from kfp_placement_kube.kinds import JsonObject
from tests.controlplane import objects
from tests.controlplane.kubelet.workload import seconds_of
from tests.support.samples import SAMPLES

CLOUD, NITLAB, HOME = "nitos-cloud-node", "nitlab-edge-node", "home-edge-node"
NEAREST = {"NITOS-CLOUD": CLOUD, "NITLAB-EDGE": NITLAB, "HOME-EDGE": HOME}
"""Place -> the node of least round trip to it."""

_DURATION = re.compile(r'(duration\\*": ?\\*")([0-9a-z.]+)')


def taxi_nodes() -> list[JsonObject]:
    """The nodes of the sample's Cluster file as Kubernetes has them.

    Round trips are node labels, as in the thesis. The store is so fast that transfers take no time:
    sizes cannot be made shorter like durations.
    """
    file = SAMPLES / "06_taxi" / "cluster.yaml"
    cluster = yaml.load(file.read_text("utf-8"), yaml.CSafeLoader)
    nodes = []
    for node in cluster["nodes"]:
        labels = {
            place: str(round_trips[node["name"]])
            for place, round_trips in cluster["latencies"].items()
        }
        labels[SPEED_LABEL] = str(node.get("speed", 1))
        labels[STORE_BANDWIDTH_LABEL] = "1T"
        room = {"cpu": str(node["cpu"]), "memory": node["memory"]}
        nodes.append(objects.node(node["name"], room, labels, images=node["images"]))
    return nodes


def with_durations(workflow: Mapping[str, Any], factor: float) -> JsonObject:
    """A Workflow whose steps say that they take longer by this factor, in milliseconds."""

    def scaled(match: re.Match[str]) -> str:
        milliseconds = max(1, round(1000 * seconds_of(match[2]) * factor))
        return f"{match[1]}{milliseconds}ms"

    changed: JsonObject = json.loads(_DURATION.sub(scaled, json.dumps(workflow)))
    return changed
