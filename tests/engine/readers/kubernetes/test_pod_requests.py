"""What a pod requests (component-helpers/resource/helpers.go), and as the scores count it."""

import pytest

from kfp_placement_engine.exceptions import InputError, QuantityError
from kfp_placement_engine.readers.kubernetes.pods import read_requests
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from tests.support.kubernetes import GIBIBYTE, MEBIBYTE, container, pod_object

DEFAULT = {"cpu": 100, "memory": 200 * MEBIBYTE}


def requests(*containers, **spec):
    """What a pod of these containers requests."""
    if containers:
        spec["containers"] = list(containers)
    return read_requests(Fields(pod_object(**spec), Place("pod")))


def test_containers_add_up():
    amounts = requests(container({"cpu": "1", "memory": "1Gi"}), container({"cpu": "500m"}))
    assert amounts.real == {"cpu": 1_500, "memory": GIBIBYTE}
    assert amounts.scored == {"cpu": 1_500, "memory": GIBIBYTE + DEFAULT["memory"]}


def test_a_container_without_requests_counts_in_scores_only():
    amounts = requests(container(), container(None, "wait"))
    assert amounts.real == {}
    assert amounts.scored == {"cpu": 200, "memory": 400 * MEBIBYTE}


def test_an_explicit_zero_is_a_request():
    """Scores count nothing for it, where they count the default for a missing one."""
    amounts = requests(container({"cpu": "0", "memory": 0}))
    assert amounts.real == {"cpu": 0, "memory": 0}
    assert amounts.scored == {"cpu": 0, "memory": 0}


def test_a_limit_without_a_request_is_a_request():
    """The API server fills it in, resource by resource."""
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    amounts = requests(container(resources=resources))
    assert amounts.real == {"cpu": 1_000, "memory": GIBIBYTE}


def test_init_containers_count_by_their_peak():
    """They run one after the other, before the containers."""
    init = [container({"cpu": "3"}), container({"memory": "2Gi"})]
    amounts = requests(container({"cpu": "1", "memory": "1Gi"}), initContainers=init)
    assert amounts.real == {"cpu": 3_000, "memory": 2 * GIBIBYTE}
    small = requests(container({"cpu": "1"}), initContainers=[container()])
    assert small.scored["cpu"] == 1_000


def test_sidecars_run_beside_what_starts_after_them():
    """A sidecar adds to the containers and to the init containers that follow it."""
    sidecar = container({"cpu": "1"}, "sidecar", restartPolicy="Always")
    big = container({"cpu": "3"}, "big")
    main = container({"cpu": "1"})
    before = requests(main, initContainers=[sidecar, big])
    after = requests(main, initContainers=[big, sidecar])
    assert before.real == {"cpu": 4_000}
    assert after.real == {"cpu": 3_000}
    alone = requests(main, initContainers=[sidecar, sidecar])
    assert alone.real == {"cpu": 3_000}


def test_overhead_adds():
    amounts = requests(container({"cpu": "1"}), overhead={"cpu": "250m", "memory": "64Mi"})
    assert amounts.real == {"cpu": 1_250, "memory": 64 * MEBIBYTE}
    assert amounts.scored == {"cpu": 1_250, "memory": 264 * MEBIBYTE}


def test_a_limit_of_the_pod_as_a_whole_counts_where_no_container_requests():
    """So the API server fills in requests; a limit never raises what containers request."""
    limits = {"limits": {"cpu": "8", "memory": "4Gi"}}
    amounts = requests(container({"cpu": "1"}), resources=limits)
    assert amounts.real == {"cpu": 1_000, "memory": 4 * GIBIBYTE}


def test_resources_of_the_pod_as_a_whole_win():
    """For CPU, memory and huge pages."""
    amounts = requests(
        resources={"requests": {"cpu": "4", "nvidia.com/gpu": "9"}},
        containers=[container({"cpu": "1"}), container(None, "wait")],
    )
    assert amounts.real == {"cpu": 4_000}
    assert amounts.scored == {"cpu": 4_000, "memory": 400 * MEBIBYTE}


def test_only_names_that_the_scheduler_knows_count():
    given = {
        "cpu": "1",
        "storage": "1Gi",
        "pods": "3",
        "ephemeral-storage": "2Gi",
        "nvidia.com/gpu": "1",
        "hugepages-2Mi": "4Mi",
    }
    amounts = requests(container(given))
    assert set(amounts.real) == {"cpu", "ephemeral-storage", "nvidia.com/gpu", "hugepages-2Mi"}


def test_a_resize_in_place_counts_by_its_largest_figure():
    """What is asked for, allocated or in force, whichever is most; not what cannot be given."""
    pod = pod_object(node="n1", containers=[container({"cpu": "2"})])
    pod["status"]["containerStatuses"] = [
        {
            "name": "main",
            "resources": {"requests": {"cpu": "3"}},
            "allocatedResources": {"cpu": "1"},
        }
    ]
    assert read_requests(Fields(pod, Place("pod"))).real == {"cpu": 3_000}
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "9"
    assert read_requests(Fields(pod, Place("pod"))).real == {"cpu": 9_000}
    pod["status"]["conditions"] = [{"type": "PodResizePending", "reason": "Infeasible"}]
    assert read_requests(Fields(pod, Place("pod"))).real == {"cpu": 3_000}


@pytest.mark.parametrize("amount", ["1e400", "9223372036854775808"])
def test_amounts_beyond_int64_count_as_the_largest(amount):
    """An API server stores them, and reads them so; a pod must not hide its other requests."""
    pod = container({"memory": amount, "cpu": "2"})
    assert requests(pod).real == {"memory": 2**63 - 1, "cpu": 2_000}


@pytest.mark.parametrize("amount", ["-1", "1 Gi", "many", True, [1]])
def test_bad_amounts_name_the_place(amount):
    with pytest.raises(QuantityError, match=r"pod: container main: requests: memory: "):
        requests(container({"memory": amount}))


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ({"containers": {"a": 1}}, "pod: containers: must be a list"),
        ({"containers": [5]}, "pod: containers: must be a mapping"),
        ({"containers": [{"resources": []}]}, "pod: container None: resources: must be a mapping"),
        ({"initContainers": "x"}, "pod: initContainers: must be a list"),
        ({"overhead": ["cpu"]}, "pod: overhead: must be a mapping"),
    ],
)
def test_other_forms_name_the_place(spec, place):
    with pytest.raises(InputError, match=place):
        requests(**spec)
