"""Templates of WorkflowTemplates, which Argo stores in a Workflow when it begins."""

from tests.controlplane.argo.state import Cluster, Json
from tests.controlplane.argo.strategic_merge import strategic_merge
from tests.controlplane.argo.templates import template_name


def store_templates(workflow: Json, cluster: Cluster) -> None:
    """Store what a Workflow that begins refers to: its spec, and templates of its tasks."""
    status, spec = workflow["status"], workflow["spec"]
    if status.get("phase"):
        return
    if "workflowTemplateRef" in spec:
        whole = cluster.find_template(spec["workflowTemplateRef"]["name"])
        spec = status["storedWorkflowTemplateSpec"] = strategic_merge(whole["spec"], spec)
    dags = [template["dag"] for template in spec["templates"] if "dag" in template]
    for task in (task for dag in dags for task in dag["tasks"] if "templateRef" in task):
        named = task["templateRef"]
        templates = cluster.find_template(named["name"])["spec"]["templates"]
        (template,) = (each for each in templates if each["name"] == named["template"])
        status.setdefault("storedTemplates", {})[template_name(task)] = template
