"""What a cluster's administrator sets for Argo's controller."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KFP_WORKFLOW_DEFAULTS: Mapping[str, Any] = {
    "spec": {"templateDefaults": {"retryStrategy": {"limit": "2", "retryPolicy": "OnError"}}}
}
"""`workflowDefaults` of KFP 2.17.0's manifests."""


@dataclass(frozen=True)
class ControllerSettings:
    """Settings of the controller.

    Attributes:
        workflow_defaults: laid under every Workflow; `{}` before KFP 2.17.
        executor_image: image of the containers `init` and `wait`.
        executor_resources: their resources.
        executor_security_context: their security context.
        recently_started_seconds: for how long after a node's start a missing pod may be a slow
            watch instead of a deleted pod; Argo's own default.
        compress_above_bytes: size of a Workflow above which its nodes are compressed; Argo's own.
    """

    workflow_defaults: Mapping[str, Any] = field(default_factory=lambda: KFP_WORKFLOW_DEFAULTS)
    executor_image: str = "argoexec:v4.0.5"
    executor_resources: Mapping[str, Any] = field(default_factory=dict)
    executor_security_context: Mapping[str, Any] = field(
        default_factory=lambda: {"runAsUser": 65532, "runAsNonRoot": True}
    )
    recently_started_seconds: float = 10.0
    compress_above_bytes: int = 1024 * 1024
