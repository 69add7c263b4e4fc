"""CPU time of one answer, with a large cluster in memory; prints a table.

`python -m tests.controller.extender.measure`: 1,000 nodes, 10,000 pods, 100 plans of 50 steps, the
recorded pod of kube-scheduler's own question. CPU time of the thread, since wall time on a busy
machine says more of the machine.
"""

import copy
import json
import platform
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.data import data_folder
from kfp_placement_controller.extender.answers import Answer, Answers
from kfp_placement_controller.extender.contention import MAX_PAUSE_SECONDS
from kfp_placement_controller.extender.deviations import DeviationNotes
from kfp_placement_controller.extender.knowledge import read_plan
from kfp_placement_controller.extender.knowledge_store import KnowledgeStore, read_bare_node
from kfp_placement_controller.loops.garbage import keep_what_is_there
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.change import Change
from tests.controller.extender.cluster import OWNER, plan_object
from tests.support.kubernetes import node_object

NODES, PODS, PLANS, STEPS = 1_000, 10_000, 100, 50
QUESTIONS, ROUNDS = 50, 20
NAMES = [f"node-{number:04d}" for number in range(NODES)]
RULED = {"OurLocation": "HOME-EDGE", "typeOfComponent": "Predict"}


def recorded_pod() -> dict[str, Any]:
    """The pod of the recorded question, 12.7 kB."""
    path = data_folder().joinpath("labelled/extender/filter-taxi-predict.json")
    pod: dict[str, Any] = json.loads(path.read_text())["Pod"]
    return pod


def filled(pod: dict[str, Any], rng: random.Random) -> KnowledgeStore:
    """A memory of a large cluster."""
    store = KnowledgeStore(DEFAULT_SOURCES)
    for name in NAMES:
        node = read_bare_node(node_object(name, labels={"HOME-EDGE": f"{rng.random() * 50:.3f}"}))
        store.node_changed(Change(("", name), None, node))
    for number in range(PODS):
        raw = copy.deepcopy(pod)
        raw["metadata"]["name"] = f"pod-{number}"
        raw["spec"]["nodeName"] = rng.choice(NAMES)
        observed = DEFAULT_SOURCES.observe_pod(raw)
        store.pod_changed(Change((observed.namespace, observed.name), None, observed))
    for number in range(PLANS):
        plan = read_plan(a_plan(rng))
        store.plan_changed(Change((pod["metadata"]["namespace"], f"run-{number}"), None, plan))
    return store


def a_plan(rng: random.Random) -> dict[str, Any]:
    """A plan over 200 of the nodes, with three alternatives for each step."""
    rows = [
        [f"step-{number}", rng.randrange(200), 0, 60, [], [[rng.randrange(200), 9]] * 3]
        for number in range(STEPS)
    ]
    return plan_object(*rows, nodes=rng.sample(NAMES, 200), uid="uid")


def question(
    pod: dict[str, Any], run: str, step: str, labels: dict[str, str], names: list[str]
) -> bytes:
    """What kube-scheduler asks of a step's pod."""
    asked = copy.deepcopy(pod)
    metadata = asked["metadata"]
    for label in RULED:
        metadata["labels"].pop(label, None)
    metadata["labels"] |= {"workflows.argoproj.io/workflow": run, **labels}
    metadata["annotations"]["workflows.argoproj.io/node-name"] = f"{run}.root.{step}.executor"
    metadata["ownerReferences"] = [{**OWNER, "name": run, "uid": "uid"}]
    return json.dumps({"Pod": asked, "Nodes": None, "NodeNames": names}).encode()


def cases(
    pod: dict[str, Any], store: KnowledgeStore, answers: Answers
) -> Iterator[tuple[str, Callable[[bytes], Answer], list[bytes]]]:
    """Name, verb and questions of each row."""
    steps = [f"step-{number}" for number in range(QUESTIONS)]
    plan = store.knowledge.plans[RunKey(pod["metadata"]["namespace"], "run-7")].steps

    def asked(run: str, labels: dict[str, str], names: list[str] = NAMES) -> list[bytes]:
        return [question(pod, run, step, labels, names) for step in steps]

    without = [
        question(pod, "run-7", step, {}, [name for name in NAMES if name != plan[step].node])
        for step in steps
    ]
    yield "`filter`, planned node offered", answers.filter, asked("run-7", {})
    yield "`filter`, planned node not offered", answers.filter, without
    yield "`filter`, ruled by latency", answers.filter, asked("another", RULED)
    yield "`filter`, nothing known", answers.filter, asked("another", {})
    yield "`prioritize`, 4 nodes", answers.prioritize, asked("run-7", {}, NAMES[:4])
    yield "`prioritize`, all nodes", answers.prioritize, asked("run-7", {})


def main() -> None:
    """Measure and print."""
    pod = recorded_pod()
    store = filled(pod, random.Random(0))
    answers = Answers(lambda: store.knowledge, DeviationNotes().decided)
    # As the process does once it knows everything.
    keep_what_is_there()
    print(f"Python {platform.python_version()}, {platform.machine()}\n")
    print("| answer | p50 ms | p99 ms |\n|---|---|---|")
    for name, verb, questions in cases(pod, store, answers):
        # Plans of unplanned runs have been awaited in vain.
        answers.filter(questions[0], MAX_PAUSE_SECONDS)
        for each in questions:
            verb(each)
        taken = []
        for each in questions * ROUNDS:
            began = time.thread_time()
            verb(each)
            taken.append(1000 * (time.thread_time() - began))
        taken.sort()
        middle, late = taken[len(taken) // 2], taken[len(taken) * 99 // 100]
        print(f"| {name} | {middle:.2f} | {late:.2f} |")


if __name__ == "__main__":
    main()
