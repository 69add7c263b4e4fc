"""PipelinePlacements in memory, under the rules that their definition has for writes."""

import copy
import itertools
from collections import Counter

from kfp_placement_kube.client import Listing
from kfp_placement_kube.exceptions import KubernetesError, NotFoundError, WriteConflictError
from kfp_placement_kube.kinds import JsonObject

Key = tuple[str, str]


class MemoryPlacements:
    """Passes for a client, as far as placements go.

    Attributes:
        objects: by namespace and name.
        calls: how often what was asked for.
        refused: writes against the rules, in words.
    """

    def __init__(self) -> None:
        self.objects: dict[Key, JsonObject] = {}
        self.calls: Counter[str] = Counter()
        self.refused: list[str] = []
        self._numbers = itertools.count(1)

    def list(self, kind, **selection) -> Listing:
        """All there are."""
        self.calls["list"] += 1
        return Listing(iter(copy.deepcopy(list(self.objects.values()))), "1")

    def get(self, kind, name, namespace="") -> JsonObject | None:
        """One of them."""
        self.calls["get"] += 1
        return copy.deepcopy(self.objects.get((namespace, name)))

    def create(self, kind, body) -> JsonObject:
        """A new one."""
        self.calls["create"] += 1
        key = (body["metadata"]["namespace"], body["metadata"]["name"])
        if key in self.objects:
            raise WriteConflictError(409, "AlreadyExists", f"{key[1]} is there already")
        made = copy.deepcopy(body)
        made["metadata"] |= {"uid": f"uid-{next(self._numbers)}"}
        self.objects[key] = made
        return self._written(made)

    def patch(self, kind, name, namespace, patch, *, subresource="") -> JsonObject:
        """Merge into what there is."""
        self.calls["patch"] += 1
        placement = self.objects.get((namespace, name))
        if placement is None:
            raise NotFoundError(404, "NotFound", f"no {name}")
        if patch["metadata"]["resourceVersion"] != placement["metadata"]["resourceVersion"]:
            raise WriteConflictError(409, "Conflict", "written in between")
        part = subresource or "spec"
        if part == "spec":
            self._judge(placement["spec"], patch["spec"])
        merged = {**placement.get(part, {}), **patch[part]}
        placement[part] = {key: value for key, value in merged.items() if value is not None}
        return self._written(placement)

    def delete(self, kind, name, namespace="", *, uid="") -> bool:
        """Remove that very one."""
        self.calls["delete"] += 1
        placement = self.objects.get((namespace, name))
        if placement is not None and placement["metadata"]["uid"] != uid:
            raise WriteConflictError(409, "Conflict", "another object")
        return self.objects.pop((namespace, name), None) is not None

    def _written(self, placement: JsonObject) -> JsonObject:
        placement["metadata"]["resourceVersion"] = str(next(self._numbers))
        return copy.deepcopy(placement)

    def _judge(self, old: JsonObject, new: JsonObject) -> None:
        first = old.get("firstMakespan")
        if new["workflowUID"] != old["workflowUID"]:
            self.refuse("a PipelinePlacement belongs to one Workflow")
        if new["epoch"] < old["epoch"]:
            self.refuse("a plan of a higher epoch is never overwritten")
        if new["revision"] < old["revision"]:
            self.refuse("revisions only grow")
        if first is not None and new.get("firstMakespan") != first:
            self.refuse("the first plan's makespan is kept")

    def refuse(self, why: str) -> None:
        self.refused.append(why)
        raise KubernetesError(422, "Invalid", why)
