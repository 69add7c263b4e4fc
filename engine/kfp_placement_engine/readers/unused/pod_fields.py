"""Fields of pods, containers and volumes: Kubernetes 1.36, `core/v1` of `k8s.io/api`.

Argo's templates have the same types, so that they are listed once.

A module of its own because Kubernetes' types are neither of Argo nor of KFP.
"""

from kfp_placement_engine.contract.gates import PREFERRED, REQUIRED
from kfp_placement_engine.contract.keys import (
    DEFAULT_SCHEDULER,
    HOST_LABEL,
    KUBERNETES_SCHEDULER,
)
from kfp_placement_engine.readers.unused.field_lists import Effect, FieldList

_ONE_ZONE = Effect("such a disk is in one zone, and its pods run only there")

PRIORITY_CLASS = Effect(
    "pods of a higher class are placed before others, and may evict them from their nodes"
)

SCHEDULER_NAME = Effect(
    "its pods go to that scheduler, which does not know the plan",
    lambda name: bool(name) and name not in (DEFAULT_SCHEDULER, KUBERNETES_SCHEDULER),
)

HOST_NETWORK = Effect("two pods that open the same port cannot share a node")

IMAGE_PULL_POLICY = Effect(
    "only nodes that have the image can run it", lambda policy: policy == "Never"
)

EPHEMERAL = Effect("each pod gets a volume of its own, which may be tied to a zone")

POD_AFFINITY = Effect("the pods of the step go near other pods")

_KEEPS_AWAY = Effect("the pods of the step keep away from other pods")

_ANTI_AFFINITY_TERM = FieldList(
    modelled="labelSelector",
    named={
        "matchLabelKeys": _KEEPS_AWAY,
        "mismatchLabelKeys": _KEEPS_AWAY,
        "namespaceSelector": Effect(_KEEPS_AWAY.text, lambda selector: selector is not None),
        "namespaces": _KEEPS_AWAY,
        "topologyKey": Effect(
            "the pods of the step keep away from the zone of other pods",
            lambda key: key != HOST_LABEL,
        ),
    },
)

POD_ANTI_AFFINITY = FieldList(named={PREFERRED: _KEEPS_AWAY}, types={REQUIRED: _ANTI_AFFINITY_TERM})

VOLUME = FieldList(
    modelled="name persistentVolumeClaim",
    irrelevant="azureFile cephfs configMap csi downwardAPI emptyDir flexVolume flocker gitRepo"
    " glusterfs image nfs photonPersistentDisk portworxVolume projected quobyte scaleIO secret"
    " storageos",
    named={
        "awsElasticBlockStore": _ONE_ZONE,
        "azureDisk": _ONE_ZONE,
        "cinder": _ONE_ZONE,
        "ephemeral": EPHEMERAL,
        "fc": _ONE_ZONE,
        "gcePersistentDisk": _ONE_ZONE,
        "hostPath": Effect("its files are those of the node, and other nodes may not have them"),
        "iscsi": _ONE_ZONE,
        "rbd": _ONE_ZONE,
        "vsphereVolume": _ONE_ZONE,
    },
)

AFFINITY = FieldList(
    modelled="nodeAffinity",
    named={"podAffinity": POD_AFFINITY},
    types={"podAntiAffinity": POD_ANTI_AFFINITY},
)

_PORT = FieldList(
    irrelevant="containerPort hostIP name protocol",
    named={"hostPort": Effect("two pods with the same port of the node cannot share a node")},
)

CONTAINER = FieldList(
    modelled="args command image name resources restartPolicy volumeMounts",
    irrelevant="env envFrom lifecycle livenessProbe readinessProbe resizePolicy"
    " restartPolicyRules securityContext startupProbe stdin stdinOnce terminationMessagePath"
    " terminationMessagePolicy tty workingDir",
    named={
        "imagePullPolicy": IMAGE_PULL_POLICY,
        "volumeDevices": Effect("its pods go to nodes that reach the disk"),
    },
    types={"ports": _PORT},
)

_RESOURCES = FieldList(modelled="claims limits requests")

_CONTAINER = CONTAINER.with_types(resources=_RESOURCES)

POD_SPEC = FieldList(
    modelled="activeDeadlineSeconds nodeSelector resourceClaims tolerations",
    irrelevant="automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks"
    " ephemeralContainers hostAliases hostIPC hostPID hostUsers hostname hostnameOverride"
    " imagePullSecrets preemptionPolicy readinessGates restartPolicy securityContext"
    " serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain"
    " terminationGracePeriodSeconds",
    named={
        "hostNetwork": HOST_NETWORK,
        "nodeName": Effect("its pods run on that node, whatever the plan says"),
        "os": Effect("its pods go to nodes of that operating system"),
        "overhead": Effect("its pods take that much more of a node"),
        "priority": PRIORITY_CLASS,
        "priorityClassName": PRIORITY_CLASS,
        "runtimeClassName": Effect(
            "a runtime class may add requests and leave out nodes that do not have it"
        ),
        "schedulerName": SCHEDULER_NAME,
        "schedulingGates": Effect("its pods wait until somebody removes the gates"),
        "schedulingGroup": Effect("its pods start only together with others of the group"),
        "topologySpreadConstraints": Effect("its pods are spread over nodes or zones"),
        "workloadRef": Effect("its pods start only together with others of the workload"),
    },
    types={
        "affinity": AFFINITY,
        "containers": _CONTAINER,
        "initContainers": _CONTAINER,
        "resources": _RESOURCES,
        "volumes": VOLUME,
    },
)
