"""Texts that people give in place of YAML: Helm templates, what kubectl describes, and Python."""

import re

_READ_BYTES = 64 * 1024
"""Length of the beginning by which text is recognised."""

_HELM = re.compile(
    rb"(?:^|: |- )[ \t]*\{\{-?\s*(?:if|else|end|range|with|include|template|define|toYaml|[.$]\w)",
    re.MULTILINE,
)
"""Helm's tags where YAML has no text; a script in quotes may hold others."""

_DESCRIBED = re.compile(
    rb"\AName:[ \t]+\S.*\n(?:.*\n){0,60}?(?:Roles|Labels|Namespace|API Version):", re.MULTILINE
)

_PYTHON = re.compile(rb"^(?:from [\w.]+ import |import \w|@dsl\.|def \w+\()", re.MULTILINE)

_OLD_KFP = re.compile(
    rb"\b(?:ContainerOp|ResourceOp|VolumeOp|PipelineVolume|func_to_container_op"
    rb"|create_component_from_func|build_python_component|kfp\.v2|dsl\.get_pipeline_conf)\b"
)
"""Names that only SDK 1.8 and older versions of KFP have."""

OLD_KFP = (
    "is Python of KFP SDK 1.8 or older, which later SDKs cannot compile; compile it with that SDK"
    " (pip install 'kfp<2'; dsl-compile --py FILE --output run.yaml) and give run.yaml"
)


def is_old_kfp(data: bytes) -> bool:
    """Return whether text is Python that only SDK 1.8 or an older one of KFP can compile."""
    start = data[:_READ_BYTES]
    return _OLD_KFP.search(start) is not None and _PYTHON.search(start) is not None


def way_out(data: bytes) -> str:
    """Return what text is, and what to give in its place; "" = it is something else.

    Args:
        data: bytes of a file that is not YAML, or holds nothing that is known.
    """
    start = data[:_READ_BYTES].lstrip().replace(b"\r\n", b"\n")
    if is_old_kfp(start):
        return OLD_KFP
    if _PYTHON.search(start):
        return "is Python; name the pipeline in it: FILE.py:NAME"
    if _HELM.search(start):
        return "is a Helm template; give what `helm template RELEASE CHART` prints"
    if _DESCRIBED.match(start):
        return (
            "is what `kubectl describe` prints, which leaves out fields; give what"
            " `kubectl get KIND NAME -o yaml` prints"
        )
    return ""
