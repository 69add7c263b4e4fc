"""Our own kinds of objects, and where the API server keeps them."""

from dataclasses import replace

from kfp_placement_engine.contract.keys import (
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
