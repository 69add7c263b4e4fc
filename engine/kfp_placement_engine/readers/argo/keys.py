"""Names that Argo gives: of the kind Workflow, and of labels and annotations."""

from kfp_placement_engine.contract.keys import KindNames

GROUP = "argoproj.io"
VERSION = "v1alpha1"

WORKFLOW_NAMES = KindNames(f"{GROUP}/{VERSION}", "workflows", "Workflow")

WORKFLOW_KINDS = ("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow")
"""Kinds of objects that hold a run."""

WORKFLOW_LABEL = "workflows.argoproj.io/workflow"
"""On pods: the Workflow's name."""

COMPLETED_LABEL = "workflows.argoproj.io/completed"
"""On Workflows: `true` once they have ended."""

INSTANCE_LABEL = "workflows.argoproj.io/controller-instanceid"
"""On Workflows: which of several controllers looks after it; one that has none leaves it alone."""

NODE_NAME_ANNOTATION = "workflows.argoproj.io/node-name"
"""On pods: the name of the Workflow's node."""

KFP_POD_LABEL = "pipelines.kubeflow.org/v2_component"
"""On pods of KFP's runs, drivers and importers included."""

LAUNCHER_CONTAINER = "kfp-launcher"
"""An init container that of KFP's pods only executors have."""
