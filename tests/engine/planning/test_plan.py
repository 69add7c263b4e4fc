"""The finished plan: rows that add up, reasons in one sentence, assumptions, notices."""

import dataclasses
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine import Assumptions, GeneticParams, PlanOptions, Taint, plan_run
from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.model.concurrency import Branch
from kfp_placement_engine.model.pod_constraints import NodeAffinity
from kfp_placement_engine.model.reasons import SENTENCES
from kfp_placement_engine.model.run_graph import DurationSource, Group, GroupKind, StepKind
from kfp_placement_engine.planning.plan_options import assumptions_of
from kfp_placement_engine.plans.planned_step import Phases
from tests.engine.planning.random_runs import cases
from tests.support.builders import (
    GIBIBYTE,
    ONE_NODE,
    ROUND_NUMBERS,
    a_cluster,
    a_kfp_run,
    a_node,
    a_run,
    a_step,
    a_workflow,
    cluster_of,
    equal_steps,
    in_zone,
    nodes,
    notice_of,
    plan_of,
    sentence_of,
    zones_a_and_b,
)

PATTERNS = [
    re.compile(re.sub(r"\\\{[a-z_]+:[a-z]+\\\}", ".*", re.escape(template)))
    for template in SENTENCES.values()
]
QUICK = {"generations": 12, "threads": 1}


def planned(run, cluster=ONE_NODE, **options):
    """A plan under round-number assumptions."""
    return plan_of(run, cluster, **{**QUICK, "assumptions": ROUND_NUMBERS, **options})


def numbers(value):
    """Every number inside a plan."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, int | float):
        yield value
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from numbers(getattr(value, field.name))
    elif hasattr(value, "items"):
        for each in value.values():
            yield from numbers(each)
    else:
        for each in value:
            yield from numbers(each)


def with_known_latencies(plan):
    """The plan without sums of round trips that are infinite because one of them is unknown."""

    def finite(figures):
        if not math.isinf(figures.latency_ms):
            return figures
        assert math.isinf(figures.latency_excess_ms)
        return dataclasses.replace(figures, latency_ms=0.0, latency_excess_ms=0.0)

    baselines = {name: finite(figures) for name, figures in plan.comparison.baselines.items()}
    comparison = dataclasses.replace(plan.comparison, baselines=baselines)
    return dataclasses.replace(plan, figures=finite(plan.figures), comparison=comparison)


@settings(max_examples=80)
@given(
    case=cases(),
    dispatch=st.sampled_from(["auto", "ready", "ordered"]),
    objective=st.sampled_from(["completion", "makespan", "paper", "packing"]),
    marked_only=st.booleans(),
    generations=st.sampled_from([0, 14]),
)
def test_every_plan_adds_up(case, dispatch, objective, marked_only, generations):
    """Rows, figures, reasons, plain numbers."""
    plan = planned(
        case.run,
        case.cluster,
        dispatch=dispatch,
        objective=objective,
        marked_only=marked_only,
        generations=generations,
        params=GeneticParams(exact_below=0, population_size=4),
        compare=("kube-default", "heft", "fifo", "random"),
    )
    assert [step.name for step in plan.steps] == [step.name for step in case.run.steps]
    assert all(math.isfinite(number) for number in numbers(with_known_latencies(plan)))
    assert all(type(number) in (int, float) for number in numbers(plan))
    ends = [row.finish_seconds for row in (*plan.steps, *plan.drivers) if row.finish_seconds]
    assert plan.figures.makespan_seconds >= max(ends, default=0)
    if not plan.unschedulable:
        assert plan.figures.makespan_seconds == max(ends, default=0)
    waits = {claim for step in case.run.steps for claim in step.claims}
    for step in plan.steps:
        reason = step.explanation.sentence
        one_sentence(reason)
        assert any(pattern.fullmatch(reason) for pattern in PATTERNS), reason
        times_add_up(step, exact=not waits)
    told_of = {name for name, _ in plan.unschedulable}
    assert told_of == {step.name for step in plan.steps if step.node is None and not step.is_cached}
    assert plan.figures.unplaced == len(told_of)


def one_sentence(reason):
    assert reason
    assert reason == reason.strip()
    assert "\n" not in reason
    assert not reason.endswith(".")
    assert ". " not in reason.replace("Eq. (1)", "")
    assert "nan" not in reason.replace("another", "").lower().split()
    assert "inf" not in reason.lower().split()


def times_add_up(step, exact):
    """Bind, pull, transfer, run; a step that waits for a volume ends later."""
    if step.node is None:
        assert (step.start_seconds is None) == (not step.is_cached)
        assert step.phases.image_pull_seconds == step.phases.transfer_seconds == 0
        return
    assert step.start_seconds is not None
    assert step.finish_seconds is not None
    total = step.start_seconds + step.phases.image_pull_seconds + step.phases.transfer_seconds
    total += step.phases.duration_seconds
    assert step.finish_seconds >= total - 1e-9
    if exact:
        assert step.finish_seconds == pytest.approx(total, abs=1e-9)


def test_the_times_of_a_step():
    """By hand: 200 B at 50 B/s, 300 + 100 B at 100 B/s, 10 s at twice the speed."""
    run = a_kfp_run(
        a_step("a", seconds=10, image="tool:1", reads=[("", 300)], output_bytes={"model": 100})
    )
    cluster = a_cluster(a_node("n1", speed=2.0), a_node("n2", cpu=0.5, images={"tool:1": 200}))
    step = planned(run, cluster).step("a")
    assert (step.node, step.start_seconds, step.phases.image_pull_seconds) == ("n1", 2, 4)
    assert (step.phases.transfer_seconds, step.phases.duration_seconds, step.finish_seconds) == (
        4,
        5,
        15,
    )
    assert step.requests == {"cpu": 1000, "memory": 256 * 2**20}


def test_the_default_scheduler_s_schedule_is_shown_where_it_is_compared():
    run = a_run(a_step("first"), a_step("huge", cpu=64), a_step("last", "first"))
    plan = planned(run, cluster_of(2, cpu=2), compare=("kube-default",))
    shown = {step.name: step for step in plan.comparison.default_schedule}
    assert set(shown) == {"first", "last"}
    assert shown["last"].start_seconds >= shown["first"].finish_seconds == 10
    assert shown["first"].phases == Phases(0.0, 0.0, 10.0)
    assert {step.node for step in plan.comparison.default_schedule} <= set(plan.cluster.nodes)
    assert planned(run, cluster_of(2, cpu=2), compare=("heft",)).comparison.default_schedule == ()


def test_of_several_tie_breaks_the_one_nearest_to_their_mean_is_shown():
    case = (a_node("slow", cpu=1, speed=0.5), a_node("fair", cpu=1), a_node("fast", cpu=1, speed=4))
    plan = planned(a_run(a_step("work", seconds=12)), a_cluster(*case), compare=("kube-default",))
    assert plan.comparison.baselines["kube-default"].makespan_seconds == pytest.approx(
        (24 + 12 + 3) / 3
    )
    assert [step.node for step in plan.comparison.default_schedule] == ["fair"]


def test_waiting_for_data_counts_as_transfer():
    """Direct transfers under ready dispatch: bound at once, the data comes after 5 s."""
    run = a_workflow(
        a_step("a", cpu=4, node_selector={"zone": "a"}),
        a_step("b", "a", reads=[("a", 500)], node_selector={"zone": "b"}),
    )
    members = zones_a_and_b()
    step = planned(run, a_cluster(*members), dispatch="ready").step("b")
    assert (step.start_seconds, step.phases.transfer_seconds, step.finish_seconds) == (10, 5, 25)
    step = planned(run, a_cluster(*members)).step("b")
    assert (step.start_seconds, step.phases.transfer_seconds, step.finish_seconds) == (15, 0, 25)


def test_drivers_stand_on_the_time_line():
    """Root, then each step's own, by start."""
    plan = planned(a_kfp_run(a_step("a"), a_step("b", "a")))
    assert [(row.name, row.start_seconds, row.finish_seconds) for row in plan.drivers] == [
        ("root", 0, 1),
        ("a", 1, 2),
        ("b", 12, 13),
    ]
    assert plan.figures.makespan_seconds == 23
    assert plan.comparison.lower_bound.seconds == pytest.approx(23)


def test_a_cached_step_has_times_but_no_node(golden):
    """Its driver runs, what comes after it starts at once, nobody calls it unschedulable."""
    run = a_kfp_run(a_step("a", cpu=99, assumed_cached=True), a_step("b", "a"))
    plan = planned(run)
    step = plan.step("a")
    assert step.is_cached
    assert (step.node, step.start_seconds, step.finish_seconds) == (None, 2, 2)
    assert step.phases.duration_seconds == 0
    golden(step.explanation.sentence)
    assert plan.unschedulable == ()
    assert plan.figures.unplaced == 0
    assert plan.step("b").start_seconds == 3


def test_conditional_and_assumed_steps_are_marked():
    """All branches are planned."""
    steps = (
        a_step("yes", conditions=("x > 1",)),
        a_step("no", conditions=("x <= 1",)),
        a_step("third", assumed=True, iteration=(2,)),
    )
    plan = planned(a_run(*steps))
    assert [step.spec.is_conditional for step in plan.steps] == [True, True, False]
    assert [step.spec.assumed for step in plan.steps] == [False, False, True]
    assert plan.step("third").spec.iteration == (2,)


def test_where_a_duration_comes_from():
    """A step without one is assumed whatever its source says."""
    steps = (
        a_step("hint", duration_source=DurationSource.HINT),
        a_step("given", duration_source=DurationSource.GIVEN),
        a_step("none", seconds=None, duration_source=DurationSource.HINT),
    )
    plan = planned(a_run(*steps))
    assert [step.run_time.source.value for step in plan.steps] == ["hint", "given", "assumed"]
    assert not plan.grounds.all_durations_assumed
    assert planned(a_run(a_step("a", seconds=None))).grounds.all_durations_assumed


def test_assumptions_are_listed_with_how_often_they_were_used(golden):
    """Nothing is listed that nothing rests on."""
    run = a_kfp_run(
        a_step("a", seconds=None, image="unknown:1", reads=[("", None)]),
        a_step("b", image="known:1"),
        groups=(Group("loop", GroupKind.LOOP, width=3, width_assumed=True),),
    )
    cluster = a_cluster(a_node(images={"known:1": 5}))
    texts = planned(run, cluster).grounds.assumptions
    golden(texts, "all")
    text = "; ".join(texts)
    for used in (
        "1 of 2 steps (a)",
        "1 input (a)",
        "(unknown:1)",
        "4 driver pods",
        "1 loop (loop)",
    ):
        assert used in text
    assert "object store" in text
    many = a_run(*equal_steps(7, seconds=None))
    first = planned(many, cluster).grounds.assumptions[0]
    golden(first, "many steps")
    plain = a_workflow(a_step("a"), a_step("b"))
    assert len(planned(plain).grounds.assumptions) == 1
    measured = a_node(store_bytes_per_second=1e6)
    assert planned(a_run(a_step("a")), a_cluster(measured)).grounds.assumptions == ()


def test_what_conditions_and_failures_are_taken_to_decide_is_assumed_too():
    def branch(name, choice, **fields):
        return a_step(name, conditions=("c",), branches=(Branch(choice, name),), **fields)

    steps = [branch("heads", "x"), branch("tails", "x"), branch("up", "y"), branch("down", "y")]
    late = a_step("clean", assumed=True, after_failure=True)
    measured = a_cluster(a_node(store_bytes_per_second=1e6))
    assert planned(a_run(*steps, late), measured).grounds.assumptions == (
        "1 step of loops whose width is known only at run time",
        "conditions of 4 steps hold (worst case)",
        "of branches that exclude each other (heads | tails; up | down) one runs; the end is that"
        " of the one that takes longest",
        "no step fails: the end does not wait for 1 step",
    )


def test_the_cluster_s_own_assumptions_come_before_the_defaults():
    """And given ones before both."""
    cluster = a_cluster(defaults={"duration_seconds": 7.0})
    run = a_run(a_step("a", seconds=None))
    assert plan_run(run, cluster).figures.makespan_seconds == 7
    assert plan_run(run, a_cluster()).figures.makespan_seconds == 60
    given = PlanOptions(assumptions=Assumptions(duration_seconds=9.0))
    assert plan_run(run, cluster, given).figures.makespan_seconds == 9
    assert assumptions_of(cluster, PlanOptions()).driver_seconds == 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"duration_seconds": -1.0},
        {"driver_seconds": float("nan")},
        {"image_bytes": -5},
        {"output_bytes": -5},
        {"store_bytes_per_second": 0.0},
        {"pull_bytes_per_second": -1.0},
        {"link_bytes_per_second": float("nan")},
        {"loop_width": 0},
    ],
)
def test_assumptions_that_cannot_be_planned_with_are_refused(wrong):
    """The message names the value."""
    with pytest.raises(PlanningError, match=next(iter(wrong))):
        Assumptions(**wrong)


def test_unmarked_steps_are_told_and_left_alone_when_asked(golden):
    """`--marked-only`: the others go where the default scheduler puts them."""
    run = a_run(a_step("marked", seconds=30, scheduler="kfp-placement"), a_step("other"))
    cluster = a_cluster(a_node("slow", cpu=64, memory=256, speed=0.1), a_node("quick", cpu=2))
    plan = planned(run, cluster)
    notice = notice_of(plan, "unmarked-steps")
    golden(notice.message, "planned")
    assert {step.node for step in plan.steps} == {"quick"}
    plan = planned(run, cluster, marked_only=True)
    notice = notice_of(plan, "unmarked-steps")
    golden(notice.message, "left alone")
    assert plan.step("other").node == "slow"
    golden(sentence_of(plan, "other"), "reason")
    assert plan.step("marked").node == "quick"


def test_workflow_formats_know_no_marks():
    """So none is missed."""
    assert planned(a_workflow(a_step("a"))).notices == ()


def test_pods_without_labels_are_the_default_scheduler_s(golden):
    """Importers and volume makers."""
    run = a_kfp_run(
        a_step("load", kind=StepKind.IMPORTER, seconds=None),
        a_step("make", kind=StepKind.CREATE_PVC, seconds=None),
        a_step("a", "load", "make"),
    )
    plan = planned(run)
    golden(sentence_of(plan, "load"), "importer")
    golden(sentence_of(plan, "make"), "volume maker")
    assert plan.step("load").phases.duration_seconds == 1
    assert plan.step("load").requests == {"cpu": 100, "memory": 64 * 2**20}


def reason_of(run, cluster=ONE_NODE):
    return sentence_of(planned(run, cluster), "a")


def test_reason_the_only_node(golden):
    """With what keeps the others away, counted."""
    cluster = a_cluster(
        a_node("n1"),
        a_node("n2", unschedulable=True),
        a_node("n3", taints=(Taint("only", "gpu"),)),
        a_node("n4", labels={"zone": "b"}, cpu=0.5),
        a_node("n5", memory=1),
    )
    run = a_run(a_step("a", memory=2))
    reason = reason_of(run, cluster)
    golden(reason, "of five")
    assert re.findall(r"1 node: .*?(cordoned|gpu|cpu|memory)", reason) == [
        "cordoned",
        "gpu",
        "cpu",
        "memory",
    ]
    golden(reason_of(run), "of one")


def test_reason_nothing_takes_it(golden):
    """All obstacles, the most frequent first, with the most that is free."""
    cluster = a_cluster(
        *nodes(3, cpu=2),
        a_node("n9", cpu=3, used={"cpu": 500, "memory": 0, "pods": 1}),
        a_node("tainted", taints=(Taint("dedicated", "", "NoExecute"),)),
    )
    wish = NodeAffinity(required=(in_zone("x"),))
    plan = planned(a_run(a_step("a", cpu=8), a_step("b", affinity=wish)), cluster)
    for name in ("a", "b"):
        golden(sentence_of(plan, name), name)
        reason = sentence_of(plan, name)
        assert reason.index("(4 nodes: ") < reason.index("1 node: ")


def test_reason_a_device_and_pods_that_lack(golden):
    """Extended resources by name; a node that takes no further pod."""
    full = a_node("n1", pods=1, used={"cpu": 0, "memory": 0, "pods": 1})
    run = a_run(a_step("a"), a_step("gpu", extended={"example.com/gpu": 1}))
    plan = planned(run, a_cluster(full, a_node("n2")))
    golden(sentence_of(plan, "a"), "pods")
    golden(sentence_of(plan, "gpu"), "a device")


def test_reason_the_run_would_end_later(golden):
    """By how much, and on which node that is the next best."""
    cluster = a_cluster(a_node("n1"), a_node("n2", speed=0.5), a_node("n3", speed=0.8))
    run = a_run(a_step("a", seconds=100))
    reason = reason_of(run, cluster)
    golden(reason)


def test_reason_it_ends_first_though_the_run_does_not():
    """Another step decides when the run ends."""
    large = {"kind": "large"}
    run = a_run(a_step("long", seconds=500, cpu=4, node_selector=large), a_step("a", seconds=20))
    cluster = a_cluster(a_node("n1", cpu=4, labels=large), a_node("n2"), a_node("n3", speed=0.5))
    reason = planned(run, cluster).step("a").explanation.sentence
    assert reason in (
        "ends first here, 20s later on n3",
        "the run ends no earlier with it on n2; this uses the nodes more evenly",
    )


def test_reasons_of_equal_nodes_claim_nothing():
    """Nothing speaks for one of them, or only an even use does."""
    reason = reason_of(a_run(a_step("a")), cluster_of(3))
    assert reason.startswith("the run ends no earlier with it on n")


def test_a_step_that_did_not_get_onto_another_node_is_not_compared_with_it(golden):
    """Ready dispatch: the quick node is full when the step is ready."""
    run = a_run(
        a_step("hog", cpu=4, seconds=300, node_selector={"kind": "quick"}),
        a_step("a", cpu=4, seconds=10),
    )
    cluster = a_cluster(a_node("n1", speed=4.0, labels={"kind": "quick"}), a_node("n2"))
    plan = planned(run, cluster, dispatch="ready")
    assert plan.step("a").node == "n2"
    golden(sentence_of(plan, "a"))


def test_progress_goes_up_to_one():
    """And says what is done."""
    reports: list[tuple[float, str]] = []
    plan_run(
        a_run(*equal_steps(12)),
        cluster_of(3),
        PlanOptions(generations=20),
        lambda share, text: reports.append((share, text)),
    )
    shares = [share for share, _ in reports]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == 1
    assert any("searching" in text for _, text in reports)
    assert any("kube-default" in text for _, text in reports)


def test_the_launcher_is_the_least_an_executor_reserves():
    """A KFP step that asks for nothing, and one that asks for more."""
    run = a_kfp_run(a_step("a", cpu=0), a_step("b", cpu=0.05, memory=1), a_step("c", cpu=2))
    plan = planned(run)
    launcher = 256 * 2**20
    assert plan.step("a").requests == {"cpu": 100, "memory": launcher}
    assert plan.step("b").requests == {"cpu": 100, "memory": GIBIBYTE}
    assert plan.step("c").requests == {"cpu": 2000, "memory": launcher}
