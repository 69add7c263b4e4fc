"""A reader of Argo Workflow objects, whoever made them, to a run graph."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kfp_placement_engine.exceptions import (
    ArgumentError,
    InputError,
    LimitError,
    RequestError,
)
from kfp_placement_engine.model.notices import HIDDEN_DEMAND, Notice
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.readers.argo.keys import GROUP, VERSION
from kfp_placement_engine.readers.argo.kfp.workflow import kfp_workflow_tree
from kfp_placement_engine.readers.argo.kfp_dialect import Dialect, readable_dialect
from kfp_placement_engine.readers.argo.plain.limits import semaphore_limits, workflow_notices
from kfp_placement_engine.readers.argo.plain.workflow import plain_workflow_tree
from kfp_placement_engine.readers.argo.references.template_library import TemplateLibrary
from kfp_placement_engine.readers.argo.references.workflow_spec import run_metadata, run_specs
from kfp_placement_engine.readers.expansion.expand import expand
from kfp_placement_engine.readers.text.fields import Fields, RawMapping
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.options import ReadOptions

_NOT_NEEDED = (
    "the package is not used: this Workflow itself has the images and requests of its steps"
)
_OTHER_STEPS = (
    "its spec does not ask for the steps in its status: as soon as somebody suspends or resumes the"
    " run, Argo joins both again"
)
_NOT_BY_KFP = (
    "it looks as if KFP had made it, but refers to a template, as nothing of KFP does: what its"
    " drivers ask for is not known"
)
_NOT_OF_RUN = "the package is not of this run, which is planned by its outline"


def read_workflow(document: RawMapping, name: str, options: ReadOptions) -> RunGraph:
    """Read a Workflow object, before any pod of it exists.

    The images and requests of a run of KFP 3 are in its package. Without the package, or with that
    of another run, only the outline of the run is read.

    Args:
        document: the Workflow.
        name: name of the file, for messages.
        options: the user's settings for reading the run.

    Raises:
        ArgumentError: the Workflow does not take one of the arguments.
        RequestError: the Workflow has no template that is called as the entrypoint given.
        InputError: the Workflow is malformed, or its steps are in another object that is not
            known, or not in the form of a known KFP.
        LimitError: the run has more steps than allowed.
    """
    workflow = Fields(document, Place(name))
    metadata, stored = run_metadata(workflow), workflow.flat("status").flat("storedTemplates")
    templates = options.templates
    library = TemplateLibrary(
        templates.objects, stored, metadata.text("namespace"), templates.advice
    )
    spec, *others = run_specs(workflow, library, options)
    graph = _read_spec(workflow, spec, metadata, library, options)
    if _is_like(graph, (_read_spec(workflow, each, metadata, library, options) for each in others)):
        return graph
    return replace(graph, notices=(*graph.notices, Notice(HIDDEN_DEMAND, _OTHER_STEPS)))


def _read_spec(
    workflow: Fields,
    spec: Fields,
    metadata: Fields,
    library: TemplateLibrary,
    options: ReadOptions,
) -> RunGraph:
    name = workflow.place.spelled
    dialect = readable_dialect(spec.raw, workflow.mapping("metadata"), spec.place)
    if dialect.is_kfp and options.arguments:
        raise ArgumentError(
            f"{name}: the arguments of a submitted KFP run are fixed; give none, or plan the "
            "pipeline package instead"
        )
    if dialect.is_kfp and options.entrypoint:
        raise RequestError(f"{name}: KFP chose the entrypoint of this Workflow; give none")
    unknown = _unknown_versions(workflow.text("apiVersion"), dialect)
    notices = [Notice("unknown-version", text) for text in unknown]
    notices += [Notice("ignored-objects", text) for text in options.templates.unread]

    if dialect.is_kfp and workflow.flat("spec").get("workflowTemplateRef") is not None:
        notices.append(Notice(HIDDEN_DEMAND, _NOT_BY_KFP))

    def read(package: RawMapping | None) -> RunGraph:
        if dialect.is_kfp:
            tree = kfp_workflow_tree(spec, metadata, dialect, package)
            beside = workflow_notices(spec, reads_exit=False)
            tree = replace(tree, notices=(*tree.notices, *beside))
        else:
            is_template = workflow.text("kind").endswith("WorkflowTemplate")
            tree = plain_workflow_tree(spec, metadata, library, options, is_template=is_template)
        limits = _semaphores(options, tree.namespace)
        noticed = (*notices, *tree.notices)
        return expand(replace(tree, semaphores=limits, notices=noticed), options)

    package = options.package
    if package is None:
        return read(None)
    if dialect is not Dialect.KFP_3:
        notices.append(Notice("ignored-package", _NOT_NEEDED))
        return read(None)
    try:
        return read(package)
    except (LimitError, RequestError):
        raise
    except InputError as error:
        notices.append(Notice("other-package", f"{_NOT_OF_RUN}: {error}"))
        return read(None)


def _is_like(graph: RunGraph, others: Iterable[RunGraph]) -> bool:
    """Return whether other specs of a run make the pods of its graph, in the same order."""
    try:
        return all(_pods(each) == _pods(graph) for each in others)
    except InputError:
        return False


def _pods(graph: RunGraph) -> RunGraph:
    """Return a graph without what changes no pod of it."""
    hiding = tuple(each for each in graph.notices if each.hides_demand)
    return replace(graph, notices=hiding, end_limit=None)


def _semaphores(options: ReadOptions, namespace: str) -> dict[str, int]:
    """Return the limits of semaphores in ConfigMaps beside the run."""
    limits: dict[str, int] = {}
    for each in options.templates.objects:
        limits |= semaphore_limits(each.raw, namespace)
    return limits


def _unknown_versions(version: str, dialect: Dialect) -> Iterator[str]:
    if version not in ("", f"{GROUP}/{VERSION}"):
        yield f"API version {version:.60} is not {GROUP}/{VERSION}; read as far as it is known"
    if dialect is Dialect.BEFORE_2_3:
        yield (
            "made by a KFP backend before 2.3, which keeps components in annotations: it is read as"
            " a plain Workflow, whose drivers count as steps and whose steps lack their own images,"
            " requests and marks; plan the pipeline package instead"
        )
