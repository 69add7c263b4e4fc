"""Large statuses: above a size Argo writes the nodes compressed."""

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def compress_nodes(workflow: Json, above_bytes: int) -> Json:
    """The Workflow with its nodes compressed if it is larger than that."""
    nodes = workflow.get("status", {}).get("nodes")
    if not nodes or len(json.dumps(workflow).encode()) <= above_bytes:
        return workflow
    packed = base64.b64encode(gzip.compress(json.dumps(nodes).encode(), mtime=0)).decode()
    status = {key: value for key, value in workflow["status"].items() if key != "nodes"}
    return {**workflow, "status": {**status, "compressedNodes": packed}}


def expand_nodes(workflow: Mapping[str, Any]) -> Json:
    """The Workflow with its nodes readable."""
    packed = (workflow.get("status") or {}).get("compressedNodes")
    if not packed:
        return dict(workflow)
    nodes = json.loads(gzip.decompress(base64.b64decode(packed)))
    status = {key: value for key, value in workflow["status"].items() if key != "compressedNodes"}
    return {**workflow, "status": {**status, "nodes": nodes}}
