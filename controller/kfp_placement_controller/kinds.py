"""Our own kinds of objects, and where the API server keeps them."""

from dataclasses import replace

from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_kube.kinds import Kind

PLACEMENTS = Kind(API_VERSION, "pipelineplacements", "PipelinePlacement")
PLACEMENT_METADATA = replace(PLACEMENTS, metadata_only=True)
POLICIES = Kind(API_VERSION, "placementpolicies", "PlacementPolicy", namespaced=False)
LOCATIONS = Kind(API_VERSION, "locations", "Location", namespaced=False)
