"""Argo's names: of the kind Workflow, and of labels and annotations."""

from kfp_placement_engine.contract.keys import KindNames

GROUP = "argoproj.io"
VERSION = "v1alpha1"

SOURCE = "argo-workflow"
"""Format of a run that is read from a Workflow, as `RunGraph.source` names it."""

WORKFLOW_NAMES = KindNames(f"{GROUP}/{VERSION}", "workflows", "Workflow")

TEMPLATE_NAMES = KindNames(f"{GROUP}/{VERSION}", "workflowtemplates", "WorkflowTemplate")
CLUSTER_TEMPLATE_NAMES = KindNames(
    f"{GROUP}/{VERSION}", "clusterworkflowtemplates", "ClusterWorkflowTemplate", namespaced=False
)

TEMPLATE_KINDS = (TEMPLATE_NAMES.kind, CLUSTER_TEMPLATE_NAMES.kind)
"""Kinds of objects whose templates others can refer to."""

WORKFLOW_KINDS = (WORKFLOW_NAMES.kind, *TEMPLATE_KINDS, "CronWorkflow")
"""Kinds of objects that hold a run."""

WORKFLOW_LABEL = "workflows.argoproj.io/workflow"
"""Label of pods with the name of their Workflow."""

COMPLETED_LABEL = "workflows.argoproj.io/completed"
"""Label of Workflows that is `true` once they have ended."""

ARTIFACT_FINALIZER = "workflows.argoproj.io/artifact-gc"
"""Finalizer of Workflows of which Argo is still to delete artifacts, by pods."""

INSTANCE_LABEL = "workflows.argoproj.io/controller-instanceid"
"""Label of Workflows that names one of several workflow controllers; all others ignore them."""

NODE_NAME_ANNOTATION = "workflows.argoproj.io/node-name"
"""Annotation of pods with the name of their node in the Workflow."""

KFP_POD_LABEL = "pipelines.kubeflow.org/v2_component"
"""Label of all pods of KFP's runs, drivers and importers included."""

LAUNCHER_CONTAINER = "kfp-launcher"
"""Name of an init container that of KFP's pods only executors have."""
