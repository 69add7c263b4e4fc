"""The taxi sample and its cluster, for whoever has installed the package but not the repository.

The files are copies of `samples/06_taxi`; a test keeps them equal.
"""

from importlib import resources

LOCATIONS = ("HOME-EDGE", "NITLAB-EDGE", "NITOS-CLOUD")
"""The places that the sample is compiled for; the first is the sample's own."""

CLUSTER_FILE = "cluster.yaml"


def run_file(location: str = LOCATIONS[0]) -> str:
    """Name of the taxi package for users at `location`.

    Raises:
        ValueError: the demo has no such place.
    """
    if location not in LOCATIONS:
        raise ValueError(f"location {location!r:.80}: the demo knows {', '.join(LOCATIONS)}")
    return f"taxi-{location.lower()}.yaml"


def content(file: str) -> bytes:
    """The bytes of `CLUSTER_FILE` or of a `run_file`."""
    return resources.files(__name__).joinpath(file).read_bytes()
