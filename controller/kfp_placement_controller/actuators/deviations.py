"""Reports of pods that are not on their planned nodes, as events and in the metrics."""

from kfp_placement_controller.metrics import DEVIATIONS
from kfp_placement_controller.observed.deviations import Deviation
from kfp_placement_engine.contract.keys import PLACED_ELSEWHERE
from kfp_placement_kube.events import EventRecorder, Regarding
from kfp_placement_kube.kinds import PODS


def report_deviation(events: EventRecorder, deviation: Deviation) -> None:
    """Record an event on the pod and count the deviation, without waiting."""
    DEVIATIONS.labels(deviation.reason).inc()
    pod = deviation.pod
    regarding = Regarding(PODS, pod.name, pod.namespace, pod.uid)
    events.record(regarding, PLACED_ELSEWHERE, deviation.message, action="Placing", once=True)
