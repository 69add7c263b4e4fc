"""Texts that people give in place of YAML: Helm templates, what kubectl describes, and Python."""

import ast
import re
import warnings
from collections.abc import Iterator
from typing import Any

_READ_BYTES = 64 * 1024
"""Length of the beginning by which text is recognised."""

_PARSED_BYTES = 2**20
"""Length of the longest Python that is looked into."""

_HELM = re.compile(
    rb"\{\{-?\s*[\"`]\{\{"
    rb"|(?:^|: |- )[ \t]*\{\{-?\s*(?:if|else|end|range|with|include|template|define|toYaml|[.$]\w)",
    re.MULTILINE,
)
"""Helm's tags where YAML has no text, or with braces for Argo; a script may hold others."""

_HELM_VALUE = re.compile(
    r"\{\{(?!=)(?:[^{}]*[\s($-])?\.(?:Values|Release|Chart|Capabilities)\.\w[^{}]*\}\}"
    r"|\{\{-?\s*(?:include|template)\s+[\"`][^{}]*\}\}"
)
"""A tag of Helm in a value that is YAML; tags of Argo do not begin with a dot."""

_HELM_IN_FILE = re.compile(
    rb"\{\{(?:[^{}]*\.(?:Values|Release|Chart|Capabilities)\.|-?\s*(?:include|template)\s)"
)
"""A likely tag of Helm in the text of a file."""

_FREE_TEXT = frozenset({"command", "args", "source", "manifest", "value", "annotations"})
"""Fields whose text may hold tags of Helm that are for the step, such as a script that calls it."""

_ARGO_GET = re.compile(rb"\AName:[ \t]+\S.*\nNamespace:.*\nServiceAccount:")

_DESCRIBED = re.compile(
    rb"\AName:[ \t]+\S.*\n(?:.*\n){0,60}?(?:Roles|Labels|Namespace|API Version):", re.MULTILINE
)

_TABLE = re.compile(rb"\A(?:NAMESPACE[ \t]+)?NAME[ \t]+(?:[A-Z]+[ \t-]+)*AGE\b")

_OF_NODES = re.compile(rb"^(?:Roles:|NAME .* ROLES )", re.MULTILINE)

_CLUSTER = "nodes,pods,pvc,pv,resourcequotas,limitranges -A"

_PYTHON = re.compile(rb"^(?:from [\w.]+ import |import \w|@dsl\.|def \w+\()", re.MULTILINE)

_OLD_KFP = frozenset(
    {
        "ContainerOp",
        "ResourceOp",
        "VolumeOp",
        "PipelineVolume",
        "func_to_container_op",
        "create_component_from_func",
        "build_python_component",
        "get_pipeline_conf",
        "onprem",
    }
)
"""Names that only SDK 1.8 and older versions of KFP have."""

HELM = "is a Helm template; give what `helm template RELEASE CHART` prints"

OLD_KFP = (
    "is Python of KFP SDK 1.8 or older, which later SDKs cannot compile; compile it with that SDK"
    " (pip install 'kfp<2'; dsl-compile --py FILE --output run.yaml) and give run.yaml"
)

_OLD_TASK = re.compile(
    r"'PipelineTask' object has no attribute '(?:container|apply|arguments|pvolume|add_(?!node)\w+"
    r"|set_(?:image_pull_policy|security_context|timeout|ephemeral_storage_\w+))'"
    r"|PipelineTask\.(?:add_node_selector_constraint|set_gpu_limit|set_retry)\(\)"
)
"""Messages of Python about uses of a task that only SDK 1.8 and older versions had."""


def is_old_task(error: BaseException) -> bool:
    """Return whether an error is about a method of tasks that later SDKs do not have so."""
    return isinstance(error, AttributeError | TypeError) and bool(_OLD_TASK.search(str(error)))


def is_old_kfp(data: bytes) -> bool:
    """Return whether text is Python that only SDK 1.8 or an older one of KFP can compile."""
    if len(data) > _PARSED_BYTES or not any(name.encode() in data for name in _OLD_KFP):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = list(ast.walk(ast.parse(data)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    imported = {name for node in nodes for name in _from_kfp(node)}
    return not imported.isdisjoint(_OLD_KFP) or any(
        isinstance(node, ast.Attribute) and node.attr in _OLD_KFP and _root(node) in imported
        for node in nodes
    )


def _from_kfp(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement imports from KFP, also what they are called here."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "kfp":
        for alias in node.names:
            yield from (alias.name, alias.asname or alias.name)
    elif isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] == "kfp":
                yield alias.asname or "kfp"


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def may_be_helm(data: bytes) -> bool:
    """Return whether a file is worth a look at all of its values for those of Helm."""
    # UTF-16 has a zero beside each letter.
    return _HELM_IN_FILE.search(data.replace(b"\0", b"")) is not None


def is_helm(documents: list[Any]) -> bool:
    """Return whether objects have values of Helm, which only `helm template` fills in."""
    waiting = list(documents)
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [each for key, each in value.items() if key not in _FREE_TEXT]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and "{{" in value and _HELM_VALUE.search(value):
            return True
    return False


def way_out(data: bytes) -> str:
    """Return what text is, and what to give in its place; "" = it is something else.

    Args:
        data: bytes of a file that is not YAML, or holds nothing that is known.
    """
    start = data[:_READ_BYTES].lstrip().replace(b"\r\n", b"\n")
    if _PYTHON.search(start) and is_old_kfp(data):
        return OLD_KFP
    if _PYTHON.search(start):
        return "is Python; name the pipeline in it: FILE.py:NAME"
    if _HELM.search(start):
        return HELM
    if _ARGO_GET.match(start):
        return (
            "is what `argo get` prints, which leaves out fields; give what `argo get NAME -o yaml`"
            " prints"
        )
    if _DESCRIBED.match(start):
        described = "`kubectl describe` prints"
    elif _TABLE.match(start):
        described = "`kubectl get` prints without -o yaml"
    else:
        return ""
    problem = f"is what {described}, which leaves out fields"
    # Only nodes have roles.
    if _OF_NODES.search(start):
        return f"{problem}; a cluster is what `kubectl get {_CLUSTER} -o yaml` prints"
    return f"{problem}; give what `kubectl get KIND NAME -o yaml` prints"
