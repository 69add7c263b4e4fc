"""Volume rules: steps that must share a node for a volume, and nodes that a volume allows.

Each claim has a key: runs of one namespace may mount the same claim, and claims that runs make for
themselves may have the same name. For a run that is planned alone the keys are names.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kfp_placement_engine.lowering.activities import Activity, Indexes
from kfp_placement_engine.model.active_runs import ActiveRun, ProgressState
from kfp_placement_engine.model.cluster import Claim, Cluster
from kfp_placement_engine.model.node_rules.constraints import matches_any_term, shared_modes
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import RunClaim, RunGraph
from kfp_placement_engine.model.step_names import listed

_ZONE_LABELS = frozenset({"topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"})

_NAMED = 3
"""Largest number of nodes, zones or claims that a reason names."""

_LONGEST = 120
"""Characters of a claim's name in a reason."""

Names = Mapping[str, str]
"""Keys of claims by name, or the other way round."""

NodesOfClaims = dict[str, frozenset[str]]
"""Key of a claim -> names of nodes."""


@dataclass(frozen=True)
class VolumeRules:
    """The rules that follow from the volumes of runs.

    Attributes:
        binding: keys of the claims that tie their users to one node, sorted: the place of a claim
            here is its index in the arrays.
        exclusive: keys of the binding claims that one pod at a time may have.
        pinned: key -> names of the nodes that its volume or its running users allow.
        notices: notices for people.
        keys: claim name -> key, one mapping for each run.
        names: key -> claim name.
        problems: key -> reason why no pod can mount the claim.
        zones: key -> zones of the volume, if it names any.
    """

    binding: tuple[str, ...]
    exclusive: frozenset[str]
    pinned: NodesOfClaims
    notices: tuple[Notice, ...]
    keys: tuple[Names, ...]
    names: Names
    problems: Names
    zones: Names

    def place(self, claim: str) -> str:
        """Return where a pinned claim is: `data-a, zone a`, or `data-a, on node-a only`."""
        zone = self.zones.get(claim)
        where = f"zone {zone}" if zone else f"on {self._reached_from(claim)}"
        return f"{self.names[claim]:.{_LONGEST}}, {where}"

    def _reached_from(self, claim: str) -> str:
        nodes = sorted(self.pinned[claim])
        return f"{listed(nodes, _NAMED)} only" if nodes else "no node"

    def apart(self, claims: Iterable[str]) -> str:
        """Return why no node reaches all claims, each of which some node reaches; "" = one does."""
        reach = {claim: self.pinned[claim] for claim in sorted(claims) if self.pinned.get(claim)}
        if len(reach) < 2 or frozenset.intersection(*reach.values()):
            return ""
        texts = [f"{self._reached_from(claim)}" for claim in reach]
        names = [f"{self.names[claim]:.{_LONGEST}}" for claim in reach]
        (first, at), *others = zip(names[:_NAMED], texts, strict=False)
        parts = [f"{first} can be reached from {at}", *(f"{name} from {on}" for name, on in others)]
        zones = [self.zones[claim] for claim in reach if claim in self.zones]
        zoned = f" (zones {' and '.join(dict.fromkeys(zones))})" if len(zones) == len(reach) else ""
        together = "both" if len(reach) == 2 else f"all {len(reach)}"
        return f"{', '.join(parts)}; no node reaches {together}{zoned}"

    def mounted(self, activity: Activity) -> tuple[str, ...]:
        """Return the keys of the claims that a pod mounts."""
        if activity.step is None or not activity.step.claims:
            return ()
        keys = self.keys[activity.run]
        return tuple([keys[claim] for claim in activity.step.claims])


def volume_rules(runs: Sequence[ActiveRun], cluster: Cluster) -> VolumeRules:
    """Find the rules from the runs' claims, their running steps and the cluster's claims."""
    keys = tuple(_claim_keys(run, alone=len(runs) == 1) for run in runs)
    binding: set[str] = set()
    exclusive: set[str] = set()
    pinned: NodesOfClaims = {}
    notices: list[Notice] = []
    problems: dict[str, str] = {}
    zones: dict[str, str] = {}
    for run, names in zip(runs, keys, strict=True):
        users = Counter(claim for step in run.graph.steps for claim in step.claims)
        for claim in run.graph.claims:
            key = names[claim.name]
            candidates = _existing(claim, run.graph, cluster)
            existing = candidates[0] if candidates else None
            if len(candidates) > 1:
                notices.append(_ambiguous(candidates))
            notices += _missing(claim, candidates, cluster)
            modes = claim.access_modes or (existing.access_modes if existing else ())
            notices += _mode_notices(claim.name, modes, users[claim.name])
            is_binding = not shared_modes(modes)
            if is_binding:
                binding.add(key)
                if "ReadWriteOncePod" in modes:
                    exclusive.add(key)
            if existing is None:
                continue
            nodes = _allowed_nodes(existing, cluster, is_binding)
            if nodes is not None:
                pinned[key] = nodes
            if existing.problem:
                problems[key] = existing.problem
            if zone := _zones(existing):
                zones[key] = zone
    pinned |= _running_users(runs, keys, binding, {node.name for node in cluster.nodes})
    return VolumeRules(
        binding=tuple(sorted(binding)),
        exclusive=frozenset(exclusive),
        pinned=pinned,
        notices=tuple(dict.fromkeys(notices)),
        keys=keys,
        names={key: name for row in keys for name, key in row.items()},
        problems=problems,
        zones=zones,
    )


def _claim_keys(run: ActiveRun, *, alone: bool) -> Names:
    own = {claim.name for claim in run.graph.claims if claim.created_by or claim.is_workspace}
    mounted = {claim for step in run.graph.steps for claim in step.claims}
    names = sorted(mounted | {claim.name for claim in run.graph.claims})
    if alone:
        return {name: name for name in names}
    return {
        name: f"{run.key}: {name}" if name in own else f"{run.graph.namespace}/{name}"
        for name in names
    }


def _running_users(
    runs: Sequence[ActiveRun], keys_of: Sequence[Names], binding: set[str], nodes: set[str]
) -> NodesOfClaims:
    """Return the key of each binding claim that running steps mount -> the nodes of these steps."""
    used: defaultdict[str, set[str]] = defaultdict(set)
    for run, keys in zip(runs, keys_of, strict=True):
        for step in run.graph.steps if run.progress else ():
            progress = run.progress.get(step.name)
            if progress is None or progress.state is not ProgressState.RUNNING:
                continue
            for claim in step.claims:
                if keys[claim] in binding and progress.node in nodes:
                    used[keys[claim]].add(progress.node)
    return {key: frozenset(names) for key, names in used.items()}


def _missing(claim: RunClaim, candidates: list[Claim], cluster: Cluster) -> list[Notice]:
    """Return a notice about a claim that the cluster does not have although it lists its claims."""
    is_made = bool(claim.created_by) or claim.is_workspace
    # The placeholder of a claim that is named at run time has a space, as no real name does.
    is_named = " " not in claim.name
    if candidates or is_made or not is_named or not cluster.claims:
        return []
    names = listed(sorted({each.name for each in cluster.claims}))
    return [
        Notice(
            "missing-claim",
            f"there is no volume claim {claim.name!r:.120} in the cluster (it has {names}); pods"
            " that mount it wait until there is one",
        )
    ]


def _mode_notices(name: str, modes: tuple[str, ...], users: int) -> list[Notice]:
    """Return the notices about the access mode of a claim that several steps use."""
    if users < 2:
        return []
    if not modes:
        return [
            Notice(
                "unknown-access-mode",
                f"the access mode of volume claim {name!r} is unknown; "
                "taken as ReadWriteOnce, so its users share a node; a dump of the cluster with pvc,"
                " or claims in a Cluster file, says it",
            )
        ]
    if "ReadWriteOncePod" in modes:
        return [
            Notice(
                "one-pod-volume",
                f"volume claim {name!r} is ReadWriteOncePod: its {users} users run one at a time; "
                "ReadWriteOnce would let those on one node run together",
            )
        ]
    return []


def _existing(claim: RunClaim, graph: RunGraph, cluster: Cluster) -> list[Claim]:
    """Return the cluster's claims of that name; several where the run's namespace is unknown."""
    if claim.created_by or claim.is_workspace:
        return []
    return [
        candidate
        for candidate in cluster.claims
        if candidate.name == claim.name
        and (not graph.namespace or candidate.namespace in ("", graph.namespace))
    ]


def _ambiguous(candidates: list[Claim]) -> Notice:
    claim = candidates[0]
    namespaces = ", ".join(candidate.namespace for candidate in candidates[:5])
    return Notice(
        "ambiguous-claim",
        f"volume claim {claim.name!r} exists in several namespaces ({namespaces}); "
        f"that of {claim.namespace} is taken: give the run's namespace",
    )


def _zones(claim: Claim) -> str:
    """Return the zones from which the claim's volume can be reached, or "" if it names none."""
    zones = {
        zone
        for term in claim.required_terms or ()
        for requirement in term.requirements
        if requirement.key in _ZONE_LABELS and requirement.operator == "In"
        for zone in requirement.values
    }
    return listed(sorted(zones), _NAMED)


def _allowed_nodes(claim: Claim, cluster: Cluster, is_binding: bool) -> frozenset[str] | None:
    if claim.problem:
        return frozenset()
    names = None
    if claim.required_terms is not None:
        names = {
            node.name for node in cluster.nodes if matches_any_term(claim.required_terms, node)
        }
    if is_binding and claim.used_on:
        used = set(claim.used_on)
        names = used if names is None else names & used
    return None if names is None else frozenset(names)


def co_location_groups(members: Sequence[int], claims_of: Sequence[Indexes]) -> list[Indexes]:
    """Partition activities so that those which share a binding claim are together.

    Args:
        members: indexes of the activities, in ascending order.
        claims_of: binding claims that each activity mounts.

    Returns:
        The groups in order of their first member; a member without binding claims is a group of its
        own.
    """
    leader = list(range(len(claims_of)))

    def find(member: int) -> int:
        while leader[member] != member:
            leader[member] = leader[leader[member]]
            member = leader[member]
        return member

    first_user: dict[int, int] = {}
    for member in members:
        for claim in claims_of[member]:
            other = find(first_user.setdefault(claim, member))
            own = find(member)
            leader[max(own, other)] = min(own, other)
    sharers: defaultdict[int, list[int]] = defaultdict(list)
    for member in members:
        if claims_of[member]:
            sharers[find(member)].append(member)
    # The first member of a group leads it.
    return [tuple(sharers.get(member, (member,))) for member in members if leader[member] == member]
