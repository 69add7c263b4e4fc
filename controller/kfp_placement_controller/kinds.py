"""Kinds of objects that the controller reads and writes: its own and Kueue's."""

from dataclasses import replace

from kfp_placement_engine.contract.keys import (
    HISTORY_NAMES,
    LOCATION_NAMES,
    PLACEMENT_NAMES,
    POLICY_NAMES,
    QUEUE_NAMES,
    REQUEST_NAMES,
)
from kfp_placement_kube.kinds import Kind

PLACEMENTS = Kind(*PLACEMENT_NAMES)
PLACEMENT_METADATA = replace(PLACEMENTS, metadata_only=True)
POLICIES = Kind(*POLICY_NAMES)
LOCATIONS = Kind(*LOCATION_NAMES)
RUN_QUEUES = Kind(*QUEUE_NAMES)
RUN_REQUESTS = Kind(*REQUEST_NAMES)
PIPELINE_HISTORIES = Kind(*HISTORY_NAMES)

KUEUE_API_VERSION = "kueue.x-k8s.io/v1beta2"
WORKLOADS = Kind(KUEUE_API_VERSION, "workloads", "Workload")
LOCAL_QUEUES = Kind(KUEUE_API_VERSION, "localqueues", "LocalQueue")
RESOURCE_FLAVORS = Kind(KUEUE_API_VERSION, "resourceflavors", "ResourceFlavor", namespaced=False)
ADMISSION_CHECKS = Kind(KUEUE_API_VERSION, "admissionchecks", "AdmissionCheck", namespaced=False)
