"""What the shipped accounts may do, verb by verb; everything else is refused."""

import itertools
from typing import Any

from tests.support.manifests import GROUP

Right = tuple[str, str, str, str]
"""Verb, API group, resource, and the name it is limited to or ""."""

WATCH = "list watch"
READ = f"get {WATCH}"
ARGO, COORDINATION, EVENTS = "argoproj.io", "coordination.k8s.io", "events.k8s.io"

PLAN = {
    "": {
        "nodes": WATCH,
        "namespaces": WATCH,
        "persistentvolumes": WATCH,
        "persistentvolumeclaims": WATCH,
        "pods": f"{READ} delete",
    },
    ARGO: {"workflows": WATCH},
    GROUP: {
        "locations": WATCH,
        "placementpolicies": f"{READ} create",
        "placementpolicies/status": "patch",
        "pipelineplacements": f"{READ} create patch delete",
        "pipelineplacements/status": "patch",
    },
    EVENTS: {"events": f"{WATCH} create patch"},
}
EXTEND = {
    "": {"nodes": WATCH, "persistentvolumeclaims": WATCH, "pods": WATCH},
    GROUP: {
        "locations": WATCH,
        "placementpolicies": f"{READ} create",
        "placementpolicies/status": "patch",
        "pipelineplacements": WATCH,
    },
    EVENTS: {"events": "create patch"},
}
QUEUES_OF_PLAN = {
    GROUP: {
        "runqueues": WATCH,
        "runqueues/status": "patch",
        "runrequests": f"{WATCH} create patch delete",
    }
}
HISTORY_OF_PLAN = {
    GROUP: {"pipelinehistories": f"{READ} create delete", "pipelinehistories/status": "patch"}
}
QUEUE = {
    "": {"namespaces": WATCH, "nodes": WATCH, "pods": WATCH},
    ARGO: {"workflows": f"{WATCH} patch"},
    GROUP: {
        "placementpolicies": WATCH,
        "runqueues": WATCH,
        "runqueues/status": "patch",
        "runrequests": WATCH,
        "runrequests/status": "patch",
        "runrequests/release": "update",
    },
    EVENTS: {"events": "create patch"},
}
RELEASE_RUNS = {
    ARGO: {"workflows": "get list patch"},
    GROUP: {
        "placementpolicies": "get",
        "runqueues": "list",
        "runqueues/status": "patch",
        "runrequests/release": "update",
    },
}
RELEASE = {"": {"pods": "get list"}, GROUP: {"placementpolicies": "get"}}
GATES = {"": {"pods": "patch"}}
ANY_LEASE = {COORDINATION: {"leases": f"{READ} create"}}


def rights(*tables: dict[str, dict[str, str]], name: str = "") -> set[Right]:
    return {
        (verb, group, resource, name)
        for table in tables
        for group, resources in table.items()
        for resource, verbs in resources.items()
        for verb in verbs.split()
    }


def expanded(rules: list[dict[str, Any]]) -> set[Right]:
    return {
        right
        for rule in rules
        for right in itertools.product(
            rule["verbs"], rule["apiGroups"], rule["resources"], rule.get("resourceNames") or [""]
        )
    }
