"""Settings that a cluster's administrator makes for Argo's controller."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KFP_WORKFLOW_DEFAULTS: Mapping[str, Any] = {
    "spec": {"templateDefaults": {"retryStrategy": {"limit": "2", "retryPolicy": "OnError"}}}
}
"""`workflowDefaults` of KFP 2.17.0's manifests."""

EXECUTOR_IMAGE = "argoexec:v4.0.5"
"""Image of the containers `init` and `wait`."""

EXECUTOR_SECURITY_CONTEXT: Mapping[str, Any] = {"runAsUser": 65532, "runAsNonRoot": True}

RECENTLY_STARTED_SECONDS = 10.0
"""Time after a node's start in which a missing pod may be a slow watch instead of a deleted pod;
Argo's own default."""

COMPRESS_ABOVE_BYTES = 1024 * 1024
"""Size of a Workflow above which its nodes are compressed; Argo's own default."""


@dataclass(frozen=True)
class ControllerSettings:
    """Settings of the controller that differ between tests.

    Attributes:
        workflow_defaults: laid under every Workflow; `{}` before KFP 2.17.
    """

    workflow_defaults: Mapping[str, Any] = field(default_factory=lambda: KFP_WORKFLOW_DEFAULTS)
