"""A reader of what Argo limits and holds: parallelism, locks, and what it does beside the steps."""

import re
from collections.abc import Iterator

from kfp_placement_engine.model.notices import HIDDEN_DEMAND, Notice
from kfp_placement_engine.readers.argo.tags import TagReader
from kfp_placement_engine.readers.text.fields import Fields, RawMapping
from kfp_placement_engine.readers.text.place import MAX_COUNT, mapping_or_empty
from kfp_placement_engine.readers.tree.expressions import EMPTY, Expression
from kfp_placement_engine.readers.tree.leaves import Lock


def parallelism(holder: Fields) -> int:
    """Return the `parallelism` of a Workflow's spec or of a template; 0 = it has no limit.

    Argo takes 0 and less for none in a template; in the spec it then starts no pod.

    Raises:
        InputError: the value is not a whole number, or has tags, which Argo refuses.
    """
    value = holder.get("parallelism")
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        problem = f"must be a whole number, not {value!r:.60}: Argo takes no text and no parameter"
        raise holder.where("parallelism").error(problem)
    return min(max(0, value), MAX_COUNT)


def locks(template: Fields, tags: TagReader) -> tuple[Lock, ...]:
    """Return the mutexes and semaphores of a template, those of its `synchronization`.

    Raises:
        InputError: one is malformed.
    """
    synchronization = template.fields("synchronization")
    entries = [
        Lock("mutex", _named(tags, mutex.get("namespace"), mutex.name("name")))
        for mutex in _both(synchronization, "mutex", "mutexes")
    ]
    for semaphore in _both(synchronization, "semaphore", "semaphores"):
        reference = semaphore.fields("configMapKeyRef")
        if reference:
            key = f"{reference.name('name')}/{reference.name('key')}"
        else:
            key = semaphore.fields("database").name("key")
        entries.append(Lock("semaphore", _named(tags, semaphore.get("namespace"), key)))
    return tuple(dict.fromkeys(entries))


def renamed_locks(template: Fields) -> Iterator[Notice]:
    """Yield notices of locks under their names of Argo 3, which Argo 4 does not know."""
    synchronization = template.fields("synchronization")
    for name, names in (("mutex", "mutexes"), ("semaphore", "semaphores")):
        if synchronization.get(name) is not None:
            problem = f"Argo 4 ignores its {name}, with which the plan is made; write {names}"
            yield Notice(HIDDEN_DEMAND, f"{template.place.spelled}: {problem}, a list")


def semaphore_limits(config_map: RawMapping, namespace: str = "") -> dict[str, int]:
    """Return the limits of semaphores that a ConfigMap may hold, by `ConfigMap/key`.

    Args:
        config_map: object of any kind, any part of which may be malformed.
        namespace: namespace of the run, "" = unknown; keys of other namespaces begin with theirs.
    """
    if config_map.get("kind") != "ConfigMap":
        return {}
    metadata = mapping_or_empty(config_map.get("metadata"))
    name, own = metadata.get("name"), metadata.get("namespace")
    if own and namespace and own != namespace:
        name = f"{own}/{name}"
    texts = mapping_or_empty(config_map.get("data")).items()
    return {
        f"{name}/{key}": int(text)
        for key, text in texts
        if isinstance(text, str) and _LIMIT.fullmatch(text)
    }


_LIMIT = re.compile(r"[+-]?[0-9]{1,9}")


def workflow_notices(spec: Fields, *, reads_exit: bool = True) -> Iterator[Notice]:
    """Yield notices of what concerns a Workflow as a whole, and no plan of one run shows.

    Args:
        spec: the Workflow's spec.
        reads_exit: whether its exit handler is read; KFP's backend makes none.

    Raises:
        InputError: a setting is malformed.
    """
    if spec.get("parallelism") is not None and not parallelism(spec):
        problem = "its parallelism is 0: Argo starts no pod until somebody raises it"
        yield Notice("parallelism", f"{problem}; the plan has no limit")
    handler = {"exit": spec.get("onExit")} if spec.get("onExit") else {}
    for name in {**spec.mapping("hooks"), **handler}:
        if name != "exit" or not reads_exit:
            yield Notice("lifecycle-hook", f"hook {name:.60} of the Workflow {_HOOK}")
    if spec.fields("artifactGC").get("podSpecPatch"):
        problem = "changes the pods that delete its artifacts after its end"
        yield Notice(HIDDEN_DEMAND, f"its artifactGC.podSpecPatch {problem}: no plan has them")


def task_notices(task: Fields) -> Iterator[Notice]:
    """Yield notices of hooks of a task that a plan does not show.

    Raises:
        InputError: the hooks are malformed.
    """
    for name in task.mapping("hooks"):
        if name != "exit":
            yield Notice("lifecycle-hook", f"{task.place.spelled}: its hook {name:.60} {_HOOK}")


_HOOK = "starts its template when its expression is true; the plan does not have its pods"


def _both(holder: Fields, one: str, many: str) -> Iterator[Fields]:
    """Yield the entries of a list, after the single one that older Argo has beside it."""
    if holder.get(one) is not None:
        yield holder.fields(one)
    yield from holder.each(many)


def _named(tags: TagReader, namespace: object, name: str) -> Expression:
    space = tags.plain(namespace)
    is_elsewhere = space and space != tags.plain("{{workflow.namespace}}")
    return tags.text(f"{space}/{name}" if is_elsewhere else name) if name else EMPTY


def refused_limits(template: Fields) -> Iterator[Notice]:
    """Yield the limits of time of a template of tasks, for which Argo refuses the Workflow."""
    for setting in ("activeDeadlineSeconds", "timeout", "pendingTimeout"):
        if template.get(setting) not in (None, ""):
            problem = f"{setting} is not for a template of tasks or steps: Argo refuses it"
            remedy = "give it to the templates of its tasks, or activeDeadlineSeconds to the spec"
            yield Notice("refused-limit", f"{template.place.spelled}: {problem}; {remedy}")
