"""The two documents of a pipeline package, as files, objects and KFP's API wrap them.

A module of its own because importing the readers of packages takes long.
"""

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.text.fields import Fields, RawMapping

_WRAPPERS = (("pipelineSpec", "platformSpec"), ("pipeline_spec", "platform_spec"))


def is_pipeline(document: RawMapping) -> bool:
    """Return whether a document is the pipeline spec of a package."""
    return "root" in document and ("pipelineInfo" in document or "deploymentSpec" in document)


def document_parts(document: Fields) -> list[RawMapping]:
    """Return pipeline spec and platform spec of a document that holds them; else the document.

    Raises:
        InputError: a wrapper is malformed.
    """
    # A PipelineVersion object, or what KFP's API answers, holds both documents of a package.
    is_version = document.get("kind") == "PipelineVersion"
    holder = document.fields("spec") if is_version else document
    for pipeline, platform in _WRAPPERS:
        if isinstance(holder.get(pipeline), dict):
            nested = holder.fields(pipeline)
            if isinstance(nested.get(pipeline), dict):
                return document_parts(nested)
            parts = [nested.raw]
            if holder.get(platform) is not None:
                parts.append(holder.mapping(platform))
            return parts
    return [document.raw]


def pipeline_of(document: Fields) -> RawMapping:
    """Return the pipeline spec in a document.

    Args:
        document: a document of a package, or what KFP's API answers for a run.

    Raises:
        InputError: the document holds none.
    """
    part = document_parts(document)[0]
    if not is_pipeline(part):
        raise InputError(f"{document.place.spelled}: holds no pipeline spec")
    return part
