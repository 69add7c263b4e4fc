"""Random clusters and pods that use everything the scheduler model knows; see README.md."""

import json
import random
import sys
from pathlib import Path
from typing import Any

Object = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CORDON = "node.kubernetes.io/unschedulable"
IMAGES = (
    "registry.example/a:v1",
    "registry.example/b@sha256:" + "0" * 64,
    "python",
    "python:latest",
    "localhost:5000/c",
    "localhost:5000/c:latest",
    "registry.example/big:1",
)
ODD_SIZES = ("+30", "x", "", "0x10", "1_0", " 5", "9223372036854775808", "-7")


class Maker:
    """Draws clusters; `strict` ones refuse more pods than they score."""

    def __init__(self, seed: int, *, strict: bool) -> None:
        self.random = random.Random(seed)
        self.strict = strict
        self.bytes = {name: self.random.randrange(5, 2_600) * 2**20 + 12_345 for name in IMAGES}

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def pick(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def case(self, name: str, nodes: int, pods: int) -> Object:
        names = [f"{name}-n{index}" for index in range(nodes)]
        return {
            "case": name,
            "kind": "strict" if self.strict else "open",
            "nodes": [self.node(each) for each in names],
            "pods": [{"pod": self.pod(f"{name}-p{index:02}", names)} for index in range(pods)],
        }

    def node(self, name: str) -> Object:
        labels = {HOSTNAME: name, "disk": self.pick("ssd", "hdd")}
        labels["size"] = self.pick(*ODD_SIZES) if self.chance(0.3) else self.pick("10", "40", "70")
        if self.chance(0.85):
            labels[ZONE] = self.pick("a", "b", "c")
        if self.chance(0.05):
            del labels[HOSTNAME]
        spec: Object = {"taints": self.taints()}
        if self.chance(0.06):
            spec["unschedulable"] = True
            spec["taints"].append({"key": CORDON, "effect": "NoSchedule"})
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {
                "allocatable": self.allocatable(),
                "conditions": [{"type": "Ready", "status": "True"}],
                "images": self.node_images(),
            },
        }

    def taints(self) -> list[Object]:
        effects = ("PreferNoSchedule",) * 4 + (("NoSchedule", "NoExecute") if self.strict else ())
        found: dict[tuple[str, str], Object] = {}
        for _ in range(self.pick(0, 0, 1, 2, 3)):
            key, effect = self.pick("dedicated", "gpu", "team"), self.pick(*effects)
            found[key, effect] = {"key": key, "value": self.pick("", "a", "b"), "effect": effect}
        return list(found.values())

    def allocatable(self) -> Object:
        sizes = {
            "cpu": self.pick("2", "3900m", "7910m", "16"),
            "memory": self.pick("4Gi", "16227392Ki", "32Gi", "7.5G", "4000000001"),
            "pods": self.pick("110", "110", "3", "5"),
            "ephemeral-storage": self.pick("100Gi", "20G", "1Gi"),
        }
        if self.chance(0.03):
            sizes["cpu"] = "0"
        if self.chance(0.4):
            sizes["nvidia.com/gpu"] = self.pick("0", "1", "4")
        if self.chance(0.1):
            sizes["hugepages-2Mi"] = "1Gi"
        return sizes

    def node_images(self) -> list[Object]:
        found = []
        for name in IMAGES:
            if self.chance(0.45):
                size = self.bytes[name] if self.chance(0.8) else self.bytes[name] // 3
                found.append({"names": [name], "sizeBytes": size})
        if found and self.chance(0.3):
            found.append({"names": found[0]["names"], "sizeBytes": 77})
        return found

    def pod(self, name: str, nodes: list[str]) -> Object:
        labels = {"app": self.pick("x", "y", "z")}
        if self.chance(0.5):
            labels["tier"] = self.pick("x", "y", "z")
        metadata: Object = {"name": name, "labels": labels}
        if self.chance(0.2):
            metadata["namespace"] = "other"
        main = [self.container(f"c{index}") for index in range(self.pick(1, 1, 1, 2, 3))]
        spec: Object = {"containers": main}
        if self.chance(0.4):
            spec["initContainers"] = [self.init(f"i{each}") for each in range(self.pick(1, 2, 3))]
        if self.chance(0.12):
            spec["overhead"] = {"cpu": "120m", "memory": "130Mi"}
        if self.chance(0.1):
            spec["resources"] = {"requests": self.pick({"cpu": "2"}, {"memory": "2Gi"})}
        if self.chance(0.06):
            spec["volumes"] = [{"name": "v", "image": {"reference": self.pick(*IMAGES)}}]
        self.add_placement(spec, nodes)
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def add_placement(self, spec: Object, nodes: list[str]) -> None:
        rare = 0.25 if self.strict else 0.05
        if self.chance(rare):
            spec["nodeSelector"] = {"disk": self.pick("ssd", "hdd")}
        spec["tolerations"] = self.tolerations()
        affinity: Object = {}
        if self.chance(rare):
            terms = [self.node_term(nodes, odd=True) for _ in range(self.pick(1, 2, 3))]
            affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}
        if self.chance(0.3):
            preferred = [
                {"weight": self.pick(1, 30, 100), "preference": self.node_term(nodes, odd=False)}
                for _ in range(self.pick(1, 2, 3))
            ]
            affinity.setdefault("nodeAffinity", {})[PREFERRED] = preferred
        for kind in ("podAffinity", "podAntiAffinity"):
            if self.chance(rare / 2):
                required = [self.pod_term() for _ in range(self.pick(1, 1, 2))]
                affinity.setdefault(kind, {})[REQUIRED] = required
            if self.chance(0.25):
                affinity.setdefault(kind, {})[PREFERRED] = [
                    {"weight": self.pick(1, 40, 100), "podAffinityTerm": self.pod_term()}
                    for _ in range(self.pick(1, 2))
                ]
        spec["affinity"] = affinity
        if self.chance(0.35):
            spec["topologySpreadConstraints"] = self.spread()

    def container(self, name: str, *, init: bool = False) -> Object:
        image = self.pick(*IMAGES, "unknown:1")
        found: Object = {"name": name, "image": image, "resources": self.resources(init=init)}
        if not init and self.chance(0.1):
            port: Object = {"containerPort": 80, "hostPort": self.pick(8080, 8081)}
            if self.chance(0.5):
                port["protocol"] = self.pick("TCP", "UDP")
            if self.chance(0.5):
                port["hostIP"] = self.pick("10.0.0.1", "10.0.0.2", "0.0.0.0")
            found["ports"] = [port]
        return found

    def init(self, name: str) -> Object:
        found = self.container(name, init=True)
        if self.chance(0.4):
            found["restartPolicy"] = "Always"
            if self.chance(0.3):
                found["ports"] = [{"containerPort": 1, "hostPort": 8080}]
        return found

    def resources(self, *, init: bool) -> Object:
        requests: Object = {}
        if self.chance(0.7):
            requests["cpu"] = self.pick("100m", "250m", "500m", "1", "1500m", "0", "1m")
        if self.chance(0.7):
            requests["memory"] = self.pick("64Mi", "100Mi", "512Mi", "1Gi", "1.5G", "0", "1")
        if self.chance(0.1):
            requests["ephemeral-storage"] = self.pick("1Gi", "500M", "19G")
        if not init and self.chance(0.05):
            requests["nvidia.com/gpu"] = self.pick("1", "2", "0")
        limits = {"cpu": "1500m", "memory": "1536Mi"} if self.chance(0.1) else {}
        return {"requests": requests, "limits": limits}

    def tolerations(self) -> list[Object]:
        found = []
        for _ in range(self.pick(0, 0, 1, 2)):
            each: Object = {"key": self.pick("dedicated", "gpu", "team")}
            each["effect"] = self.pick("", "NoSchedule", "PreferNoSchedule", "NoExecute")
            if self.chance(0.5):
                each["operator"] = "Exists"
            else:
                each["value"] = self.pick("", "a", "b")
            found.append(each)
        if self.chance(0.1):
            found.append({"operator": "Exists"})
        if self.chance(0.1):
            found.append({"key": CORDON, "operator": "Exists", "effect": "NoSchedule"})
        return found

    def node_term(self, nodes: list[str], *, odd: bool) -> Object:
        term: Object = {}
        if self.chance(0.85):
            term["matchExpressions"] = [
                self.node_expression(odd=odd) for _ in range(self.pick(1, 2))
            ]
        if self.chance(0.25):
            operator, name = self.pick("In", "NotIn"), self.pick(*nodes)
            field = {"key": "metadata.name", "operator": operator, "values": [name]}
            term["matchFields"] = [field]
        return term

    def node_expression(self, *, odd: bool) -> Object:
        operator = self.pick("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
        if operator in ("Gt", "Lt"):
            # The API server refuses values that are no label values in new preferred terms only.
            values = ("30", "0", "50") + (("-8", "+15") if odd else ())
            return {"key": "size", "operator": operator, "values": [self.pick(*values)]}
        found = {"key": self.pick("disk", "size", ZONE, "none"), "operator": operator}
        if operator in ("In", "NotIn"):
            return {**found, "values": [self.pick("ssd", "a", "10"), self.pick("hdd", "b", "40")]}
        return found

    def selector(self) -> Object:
        found: Object = {}
        if self.chance(0.7):
            found["matchLabels"] = {"app": self.pick("x", "y", "z")}
        if self.chance(0.4):
            operator = self.pick("In", "NotIn", "Exists", "DoesNotExist")
            expression: Object = {"key": self.pick("app", "tier"), "operator": operator}
            if operator in ("In", "NotIn"):
                expression["values"] = [self.pick("x", "y"), "z"]
            found["matchExpressions"] = [expression]
        return found

    def pod_term(self) -> Object:
        term: Object = {"topologyKey": self.pick(ZONE, HOSTNAME, "disk")}
        if self.chance(0.95):
            term["labelSelector"] = self.selector()
        if self.chance(0.15):
            term["namespaces"] = ["other"]
        elif self.chance(0.15):
            term["namespaceSelector"] = {}
        return term

    def spread(self) -> list[Object]:
        found: dict[tuple[str, str], Object] = {}
        for _ in range(self.pick(1, 1, 2)):
            key = self.pick(ZONE, HOSTNAME, "disk")
            action = self.pick(*(["ScheduleAnyway"] * 3), "DoNotSchedule")
            each: Object = {"maxSkew": self.pick(1, 2, 3), "topologyKey": key}
            each["whenUnsatisfiable"] = action
            if self.chance(0.9):
                each["labelSelector"] = self.selector()
            if action == "DoNotSchedule" and self.chance(0.3):
                each["minDomains"] = self.pick(1, 2, 3)
            for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
                if self.chance(0.3):
                    each[policy] = self.pick("Honor", "Ignore")
            if self.chance(0.2):
                each["matchLabelKeys"] = ["tier"]
            found[key, action] = each
        return list(found.values())


def main(version: str, seed: int, cases: int, pods: int) -> Object:
    """So many clusters of 3 to 10 nodes, every third one strict."""
    found = []
    for index in range(cases):
        maker = Maker(seed * 1_000 + index, strict=index % 3 == 0)
        found.append(maker.case(f"w{index}", maker.random.randrange(3, 11), pods))
    note = "made with kube-scheduler's own plugins, see recorder/README.md"
    return {"kubernetes": version, "profile": "default", "note": note, "cases": found}


if __name__ == "__main__":
    asked = main(sys.argv[1], int(sys.argv[2]), *(int(each) for each in sys.argv[4:6] or (36, 15)))
    Path(sys.argv[3]).write_text(json.dumps(asked), encoding="utf-8")
