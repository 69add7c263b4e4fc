"""A Pod object -> what the model of kube-scheduler looks at."""

from benchmarks.kube_scheduler.reading import read_pod
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from tests.support.kubernetes import container, pod_object


def test_a_whole_pod():
    """Images and containers are counted with the init containers, ports only where they last."""
    pod = pod_object(
        "p",
        namespace="team",
        labels={"app": "x", "tier": "web"},
        containers=[container(image="a", ports=[{"hostPort": 80}, {"containerPort": 81}])],
        initContainers=[
            container(image="b", ports=[{"hostPort": 82}]),
            container(
                image="b", restartPolicy="Always", ports=[{"hostPort": 83, "protocol": "UDP"}]
            ),
        ],
        volumes=[{"name": "data", "image": {"reference": "c"}}, {"name": "tmp", "emptyDir": {}}],
        resources={"requests": {"cpu": "4"}},
        topologySpreadConstraints=[
            {
                "topologyKey": "zone",
                "maxSkew": 2,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "x"}},
                "matchLabelKeys": ["tier", "missing"],
            }
        ],
        affinity={
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {}}
                ]
            }
        },
    )
    read = read_pod(Fields(pod, Place("pod")))
    assert (read.images, read.image_volumes, read.containers) == (("b", "b", "a"), ("c",), 3)
    assert [(each.port, each.protocol) for each in read.host_ports] == [(83, "UDP"), (80, "TCP")]
    (spread,) = read.spread
    assert (spread.max_skew, spread.required) == (2, False)
    assert spread.selector is not None
    assert spread.selector.matches({"app": "x", "tier": "web"})
    assert not spread.selector.matches({"app": "x", "tier": "db"})
    (term,) = read.pod_affinity.required
    assert term.namespaces == {"team"}
    assert term.selector is not None
    assert term.selector.matches({})
    assert read.scored_requests["cpu"] == 4_000
    assert read.arrival_requests is not None
    assert read.arrival_requests["cpu"] == 200
