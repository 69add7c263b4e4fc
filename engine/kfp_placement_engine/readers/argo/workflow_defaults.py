"""Constraints that an administrator sets for all pods of KFP's Workflows.

They stand in the Workflow's spec, its `templateDefaults`, its `podSpecPatch` or the executors'
template; KFP's driver puts each task's own settings on top when the pod is made.
"""

from dataclasses import replace
from typing import Any

from kfp_placement_engine.readers.argo.plain_templates import merge, pod_spec_patch
from kfp_placement_engine.readers.argo.plain_text import TagReader
from kfp_placement_engine.readers.argo.workflow_templates import WorkflowTemplates
from kfp_placement_engine.readers.fields import as_list, as_mapping, as_text, as_text_mapping
from kfp_placement_engine.readers.tree.expressions import Constant, Expression
from kfp_placement_engine.readers.tree.tasks import Leaf

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class WorkflowDefaults:
    """What a Workflow sets for the pods of each of its templates."""

    def __init__(self, spec: dict[str, Any], templates: WorkflowTemplates, name: str) -> None:
        self._spec = spec
        self._templates = templates
        self._name = name
        self._defaults = as_mapping(spec.get("templateDefaults"), f"{name}: templateDefaults")
        self._patch = pod_spec_patch(spec, TagReader({}, {}), f"{name}: spec")

    def under(self, leaf: Leaf, template: str) -> Leaf:
        """The leaf with the defaults of its pod's template under its own settings.

        Args:
            leaf: the task as KFP describes it.
            template: the template that the task names.

        Raises:
            InputError: malformed.
        """
        pod = self._templates.template(self._pod_template(template))
        selector = {
            **as_text_mapping(self._constraint(pod, "nodeSelector"), self._name),
            **as_text_mapping(self._patch.get("nodeSelector"), self._name),
        }
        tolerations = self._patch.get("tolerations") or self._constraint(pod, "tolerations")
        affinity = merge(self._constraint(pod, "affinity"), self._patch.get("affinity"))
        if not selector and not tolerations and not affinity:
            return leaf
        own_selectors: tuple[Expression, ...] = leaf.node_selectors
        if selector:
            own_selectors = (Constant(selector), *own_selectors)
        return replace(
            leaf,
            node_selectors=own_selectors,
            # Of two lists Kubernetes' patches keep the later one.
            tolerations=leaf.tolerations or ((Constant(tolerations),) if tolerations else ()),
            affinities=self._affinities(leaf, affinity),
        )

    def _pod_template(self, template: str) -> str:
        """The template that is the pod: KFP's executors are DAGs of one task."""
        dag = as_mapping(self._templates.template(template).get("dag"), self._name)
        tasks = as_list(dag.get("tasks"), self._name)
        if not tasks:
            return template
        return as_text(as_mapping(tasks[0], self._name).get("template"), self._name)

    def _constraint(self, pod: dict[str, Any], key: str) -> Any:
        return pod.get(key) or self._defaults.get(key) or self._spec.get(key)

    def _affinities(self, leaf: Leaf, affinity: Any) -> tuple[Expression, ...]:
        """The task's own terms, and the kinds of terms that it does not set."""
        fields = as_mapping(as_mapping(affinity, self._name).get("nodeAffinity"), self._name)
        kinds = {_REQUIRED, _PREFERRED}
        for own in leaf.affinities:
            kinds -= set(own.value) if isinstance(own, Constant) else kinds
        left = {kind: fields[kind] for kind in sorted(kinds) if fields.get(kind)}
        return (*leaf.affinities, Constant(left)) if left else leaf.affinities
