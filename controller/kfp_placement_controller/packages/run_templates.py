"""Templates of other objects that runs refer to, until their workflow engine has stored them.

What is not here is counted as a step without requests, so nothing waits for it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kfp_placement_controller.sources.source import ObservedRun, ObservedTemplates, TemplateKey
from kfp_placement_engine.model.keys import RunKey

MOST_BYTES = 64 * 2**20
"""Limit of all objects together; one of 20 templates has 20 kB."""

MOST_OBJECTS = 200
"""Limit of the objects that one run is read with."""


@dataclass
class RunTemplates:
    """Objects with templates, and the runs that refer to them.

    Attributes:
        most_bytes: limit of all objects together, in bytes; further ones do not count.
    """

    most_bytes: int = MOST_BYTES
    _objects: dict[TemplateKey, ObservedTemplates] = field(default_factory=dict)
    _size_bytes: int = 0
    _runs: dict[RunKey, ObservedRun] = field(default_factory=dict)
    _wanted: dict[RunKey, frozenset[TemplateKey]] = field(default_factory=dict)
    """Objects that each run needs, those that are missing included."""

    def joined(self, observed: ObservedRun) -> ObservedRun:
        """Take in a run, and return it with the templates that it refers to."""
        if not observed.refers_to:
            self.gone(observed.key)
            return observed
        wanted = self._reached_from(observed.refers_to)
        self._wanted[observed.key] = frozenset(wanted)
        documents = tuple(self._objects[key].document for key in wanted if key in self._objects)
        run = replace(observed, content=observed.content.with_templates(documents))
        self._runs[observed.key] = run
        return run

    def gone(self, key: RunKey) -> None:
        """Forget a run that is gone, or needs no templates of other objects any more."""
        self._runs.pop(key, None)
        self._wanted.pop(key, None)

    def changed(self, key: TemplateKey, new: ObservedTemplates | None) -> list[ObservedRun]:
        """Take in an object, or that it is gone; return the runs that have other templates now."""
        old = self._objects.pop(key, None)
        self._size_bytes -= len(old.document) if old else 0
        if new is not None and self._size_bytes + len(new.document) <= self.most_bytes:
            self._objects[key] = new
            self._size_bytes += len(new.document)
        if old == self._objects.get(key):
            return []
        concerned = [run for run, wanted in self._wanted.items() if key in wanted]
        return [self.joined(self._runs[run]) for run in concerned]

    def _reached_from(self, keys: Iterable[TemplateKey]) -> list[TemplateKey]:
        """Return objects and those that they refer to in turn, in an order that stays."""
        reached = dict.fromkeys(sorted(keys)[:MOST_OBJECTS])
        waiting = list(reached)
        while waiting and len(reached) < MOST_OBJECTS:
            templates = self._objects.get(waiting.pop())
            further = sorted(templates.refers_to - reached.keys()) if templates else []
            reached |= dict.fromkeys(further[: MOST_OBJECTS - len(reached)])
            waiting += further
        return list(reached)
