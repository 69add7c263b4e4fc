import re
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.plans.comparison import ScheduledStep
from kfp_placement_engine.plans.limits import CriticalPiece, PieceKind, ResourceUse
from kfp_placement_engine.plans.planned_step import Phases, PlannedDriver
from kfp_placement_engine.render.palette import PlaceColours
from kfp_placement_engine.render.time_line import draw_time_line
from kfp_placement_engine.views.plans.detail import NOTEBOOK, PAGE
from kfp_placement_engine.views.plans.time_line import plan_time_line
from tests.support.html_pages import parse_page, selectors
from tests.support.plans import (
    a_plan,
    a_step,
    ends_after,
    random_plan,
    renamed,
    stuck_plan,
    taxi_plan,
    unplaced_step,
    varied,
)
from tests.support.renderings import plan_fragment, plan_page

SCOPE = "kfp-placement"
EVIL = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "$(rm -rf /) `id` && ; | > <!-- ]]> </style></title></svg>",
    "&lt;b&gt; &amp; &#60;",
    "\x1b[31m \0 \u202e \n",
    "a" * 5000,
)

SVG = "http://www.w3.org/2000/svg"
TAXI = taxi_plan()
TAXI_PAGE = parse_page(plan_page(TAXI))
TAXI_NOTEBOOK = parse_page(plan_fragment(TAXI))
each_way = pytest.mark.parametrize("make", [plan_page, plan_fragment])
POLICY = "http-equiv"

PLANS = {
    "one step": a_plan(),
    "no steps": a_plan(steps=()),
    "taxi": TAXI,
    "unplaced": a_plan(unplaced_step(), baselines={"fifo": ends_after(9.0)}),
    "stuck": stuck_plan(),
    "cached": a_plan(a_step(), unplaced_step("hit", cached=True, reason="taken from the cache")),
    "loads": random_plan(2_000, 100),
    "no time": a_plan(a_step(finish_seconds=0.0, duration_seconds=0.0)),
    "in a circle": a_plan(a_step("a", depends_on=("b",)), a_step("b", depends_on=("a",))),
    "unknown parent": a_plan(a_step("a", depends_on=("gone",))),
    "node of another cluster": a_plan(a_step(node="elsewhere")),
}


def lines_of(source, *fragments):
    """The texts of a page; with fragments, those that hold one."""
    lines = [text.strip() for text in parse_page(source).text if text.strip()]
    return [line for line in lines if not fragments or any(each in line for each in fragments)]


@each_way
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_nothing_active_nothing_from_outside(plan, make):
    whole = parse_page(make(plan))
    assert len(whole.drawings) == len(whole.all("img"))
    # No figure of nothing.
    assert not re.search(r"\b(nan|inf|None)\b", "".join(whole.text))
    assert not re.search(r'="[^"]*\b(nan|inf)\b', make(plan))
    for page in (whole, *whole.drawings):
        assert page.unbalanced == []
        kinds = {kind for kind, _ in page.elements}
        assert not kinds & {"script", "iframe", "object", "embed", "link", "a", "form", "base"}
        assert not kinds & {"foreignobject", "image", "use"}
        for kind, attributes in page.elements:
            assert not [key for key in attributes if key.startswith("on")]
            assert not {"href", "xlink:href", "action", "srcset"} & set(attributes)
            assert "src" not in attributes or kind == "img"
            assert "http" not in str(attributes.items() - {("xmlns", SVG)}).replace(POLICY, "")
        assert "http" not in "".join(page.styles)
        assert not re.search(r"url\((?!#)|@import|javascript:", make(plan) + "".join(page.styles))


def test_the_policy_allows_styles_alone():
    (policy,) = [m for m in TAXI_PAGE.all("meta") if "http-equiv" in m]
    assert policy == {
        "http-equiv": "Content-Security-Policy",
        "content": "default-src 'none'; style-src 'unsafe-inline'",
    }


def test_all_parts_are_there(golden):
    lines = lines_of(plan_page(TAXI))
    golden(lines)
    assert {"Time line", "Graph", "Comparison", "Steps", "Warnings (2)"} <= set(lines)


@each_way
def test_a_run_that_does_not_end_gets_no_good_news(make, golden):
    source = make(stuck_plan())
    golden(lines_of(source, "does not end", "no node", "never starts"))
    text = " ".join(parse_page(source).text)
    assert "does not end" in text
    assert not re.search(r"%|reached|from submission to end|shorter|10h40m", text)
    assert text.count("all times are") == 1
    # In the step table, and where the graph's boxes have titles, there.
    titles = 2 if make is plan_page else 0
    assert text.count("after crunch-2, which") == 2 + titles
    drawn = " ".join(" ".join(drawing.text) for drawing in parse_page(source).drawings)
    assert (text + drawn).count("never starts") == 2


def test_the_notebook_shows_the_same_parts():
    whole, part = TAXI_PAGE.prose, TAXI_NOTEBOOK.prose
    assert [text for text in whole if text != "\n"][1:] == [text for text in part if text != "\n"]


def test_a_notebook_has_no_drawing_that_it_might_drop():
    page = TAXI_NOTEBOOK
    assert not page.all("svg")
    timeline, graph = page.all("img")
    assert timeline["alt"] == (
        "Time line of taxi by node. 7 steps on 3 nodes, ending after 31m5s."
        " The step table holds the same figures."
    )
    assert graph["alt"].startswith("Steps of taxi and their nodes. Arrows go")
    for drawing in page.drawings:
        assert drawing.elements[0][1]["class"].startswith("kfp-drawing")
        assert "background:var(--card)" in "".join(drawing.styles)
        assert "prefers-color-scheme:dark" in "".join(drawing.styles)
        assert {step.name for step in TAXI.steps} <= set(drawing.text)


@each_way
@pytest.mark.parametrize("name", EVIL, ids=range(len(EVIL)))
def test_names_are_text_and_nothing_else(name, make):
    plain, evil = (parse_page(make(renamed(TAXI, text))) for text in ("plain", name))
    assert evil.structure == plain.structure
    for page, same in zip((evil, *evil.drawings), (plain, *plain.drawings), strict=True):
        assert page.structure == same.structure
        assert page.unbalanced == []


@given(name=st.text(alphabet=st.characters(), min_size=1, max_size=60))
@example(name="<")
@settings(max_examples=60)
def test_any_name_shows_as_itself(name):
    # Two steps of one name would share a box of the graph.
    assume(name not in {step.name for step in TAXI.steps})
    page = parse_page(plan_fragment(renamed(TAXI, name)))
    plain = parse_page(plan_fragment(renamed(TAXI, "plain")))
    assert page.structure == plain.structure
    assert all(text.strip("\n").isprintable() for text in page.text)
    if name.isprintable():
        assert name in page.text


def test_names_from_right_to_left_leave_the_rest_in_order():
    page = parse_page(plan_fragment(renamed(TAXI, "\u05d0\u05d1 fetch \u05d2")))
    assert len(page.all("bdi")) >= 4
    assert not TAXI_NOTEBOOK.all("bdi")


def test_without_elements_words_stay_apart():
    """As where an untrusted notebook, a mail or a search shows the bare text."""
    words = "".join(TAXI_NOTEBOOK.text).split()
    for step in TAXI.steps:
        assert step.name in words
        assert step.node in words
    assert {"31m5s", "15.6%", "shorter", "Makespan"} <= set(words)


LIMITED = a_plan(
    a_step("fetch", display_name="Fetch the table"),
    a_step("train", start_seconds=65.0, finish_seconds=125.0, depends_on=("fetch",)),
    critical_path=(
        CriticalPiece("fetch", PieceKind.RUNNING, 0.0, 60.0, "node-0"),
        CriticalPiece("train", PieceKind.DRIVER, 60.0, 65.0, "node-0"),
        CriticalPiece("train", PieceKind.RUNNING, 65.0, 125.0, "node-0"),
    ),
    binding_resources=(ResourceUse(0.0, 125.0, "cpu", 0.5),),
    default_schedule=(
        ScheduledStep("fetch", "node-1", 0.0, 60.0),
        ScheduledStep("train", "node-1", 70.0, 250.0),
    ),
    cluster_nodes=("node-0", "node-1"),
    baselines={"kube-default": ends_after(250.0)},
)


@each_way
def test_what_limits_a_run_is_told(make):
    text = " ".join(" ".join(parse_page(make(LIMITED)).text).split())
    assert "What limits this run" in text
    assert "1m 48% Fetch the table runs on node-0" in text
    assert "scarcest resource: cpu: 50% of the free room" in text
    assert "What limits this run" not in make(TAXI)


@each_way
def test_the_default_schedule_is_a_second_time_line(make):
    page = parse_page(make(LIMITED))
    drawn = page.drawings[0].text if page.drawings else page.text
    mine, default = drawn.index("This plan: 2m5s"), drawn.index("The default scheduler: 4m10s")
    assert drawn.index("node-0") > mine
    assert drawn.index("node-1") > default > mine
    assert "what the end of the run waits for" in drawn


def test_what_waits_for_a_volume_does_not_run():
    """Under the default scheduler too, users of one volume hold a node before they begin."""
    waiting = ScheduledStep("train", "node-0", 0.0, 100.0, Phases(10.0, 20.0, 40.0))
    plan = varied(LIMITED, default_schedule=(waiting,))
    (lane,) = plan_time_line(plan, PAGE).schedules[1].lanes
    assert lane.bars[0].phases == [("pull", 10), ("wait", 40), ("transfer", 60), ("run", 100)]
    waits = plan_page(plan).count('class="wait"')
    assert waits == 1 + plan_page(varied(plan, default_schedule=())).count('class="wait"')


def test_names_of_authors_stand_before_names_of_steps():
    lines = lines_of(plan_fragment(LIMITED))
    assert lines[lines.index("Fetch the table") + 1] == "fetch"


def test_many_items_of_a_loop_are_one_line_that_opens():
    def loop(count):
        items = [
            a_step(f"loop[{index}].work", task="loop[*].work", iteration=(index,))
            for index in range(count)
        ]
        return parse_page(plan_fragment(a_plan(*items)))

    assert loop(8).all("details") == []
    page = loop(9)
    assert len(page.all("details")) == 1
    assert "loop[*].work x 9" in page.text
    assert {f"loop[{index}].work" for index in range(9)} <= set(page.text)


def test_accessible():
    page = TAXI_PAGE
    assert ("html", {"lang": "en"}) in page.elements
    ids = page.ids
    assert len(ids) == len(set(ids))
    pictures = page.all("svg")
    assert len(pictures) == 2
    for svg in pictures:
        assert svg["role"] == "img"
        assert {svg["aria-labelledby"], svg["aria-describedby"]} <= set(ids)
    assert len(page.all("caption")) == len(page.all("table")) == 2
    assert all("scope" in head for head in page.all("th"))
    scrolling = [div for div in page.all("div") if "kp-scroll" in div.get("class", "").split()]
    assert scrolling
    assert all(div["tabindex"] == "0" and div["aria-label"] for div in scrolling)


def test_references_within_a_page_lead_somewhere():
    source = plan_page(TAXI)
    assert set(re.findall(r"url\(#([\w-]+)\)", source)) <= set(parse_page(source).ids)


def test_two_plans_in_one_notebook_share_no_ids():
    assert TAXI_NOTEBOOK.ids == []


def test_notebook_styles_touch_nothing_else():
    (style,) = TAXI_NOTEBOOK.styles
    scoped = selectors(style)
    assert len(scoped) > 60
    assert [selector for selector in scoped if f".{SCOPE}" not in selector] == []
    # The scope may only follow what says which theme is on.
    themes = {f'body[data-jp-theme-light="{light}"]' for light in ("true", "false")}
    before = {selector.split(f".{SCOPE}")[0].strip() for selector in scoped}
    assert before == {"", "body.vscode-light", "body.vscode-dark"} | themes


def test_the_notebook_has_no_page_of_its_own():
    page = TAXI_NOTEBOOK
    kinds = {kind for kind, _ in page.elements}
    assert not {"html", "head", "body", "meta", "title", "h1", "h2"} & kinds
    kind, attributes = page.elements[0]
    assert (kind, attributes["class"].split()[0]) == ("div", SCOPE)


def test_a_notebook_stays_small_whatever_the_plan():
    name = "for-loop-1[0].<&>\x1b" * 60
    steps = [
        varied(
            step,
            name=f"{name}{index}",
            task=f"{name}{index}",
            reason=name * 3,
            location=name,
            depends_on=tuple(f"{name}{parent}" for parent in range(max(0, index - 3), index)),
        )
        for index, step in enumerate(random_plan(3_000, 500, fan=0).steps)
    ]
    plan = a_plan(
        *steps,
        cluster_nodes=tuple(f"node-{index}" for index in range(500)),
        notices=tuple(Notice(name, name, name) for _ in range(1_000)),
        drivers=tuple(PlannedDriver(name, "node-0", i, i + 5.0) for i in range(3_000)),
        unschedulable=tuple((name, name) for _ in range(1_000)),
        assumptions=(name,) * 1_000,
    )
    source = plan_fragment(plan)
    assert len(source) < 1_000_000
    assert "2,800 more steps not shown" in source


@pytest.mark.parametrize("count", [200, 250])
def test_a_notebook_of_plain_names_stays_below_300_kilobytes(count):
    assert len(plan_fragment(random_plan(count, 20))) < 300_000


def test_rows_are_capped_with_a_summary():
    source = plan_fragment(random_plan(201, 3))
    rows = parse_page(source).all("tr")
    assert f"{NOTEBOOK.rows:,} of 201 steps" in source
    assert "1 more step not shown" in source
    assert len(rows) < 201 + 10


def test_large_plans_are_summed_up(golden):
    source = plan_page(random_plan(2_000, 100))
    golden(lines_of(source, "2,000 steps", "nodes with most", "levels, at most"))


def test_iterations_share_a_box_in_a_large_graph(golden):
    steps = [
        a_step(
            f"loop[{index}].work", task="loop[*].work", iteration=(index,), node=f"node-{index % 2}"
        )
        for index in range(400)
    ]
    source = plan_page(a_plan(*steps, cluster_nodes=("node-0", "node-1")))
    golden(lines_of(source, "400 steps"))
    assert "Loops of more than 8 items share a box." in source


def test_only_nodes_that_are_not_drawn_are_said_not_to_be(golden):
    """A node with a driver pod alone is drawn; one without any pod is not."""
    driver = PlannedDriver("train", "drivers", 0.0, 5.0)
    plan = a_plan(a_step(node="steps"), drivers=(driver,), cluster_nodes=("steps", "drivers"))
    assert "not shown" not in plan_page(plan)
    idle = varied(plan, cluster_nodes=("steps", "drivers", "idle"))
    golden(lines_of(plan_page(idle), "not shown"))


def test_steps_that_follow_each_other_share_a_lane_and_all_have_labels():
    starts = (0.0, 40.0, 80.0, 1990.0, 2010.0, 2030.0)
    steps = [
        a_step(f"step-{start:.0f}", node="worker", start_seconds=start, finish_seconds=end)
        for start, end in pairwise(starts)
    ]
    plan = a_plan(*steps, cluster_nodes=("worker",))
    view = plan_time_line(plan, NOTEBOOK)
    drawing = draw_time_line(view, PlaceColours(["worker"]), 690.0).standalone()
    _, _, lane = drawing.partition('class="row-name"')  # what is before it is the key
    bars = re.findall(r'<rect x="[^"]*" y="([^"]*)"[^>]*class="outline', lane)
    assert len(bars) == len(steps)
    assert len(set(bars)) == 1
    assert all(f">{step.name}<" in drawing for step in steps)


def test_a_load_says_in_its_tooltip_how_many_steps_run_at_once():
    loads = re.findall(r'class="load"><title>(.*?)</title>', plan_page(PLANS["loads"]))
    assert loads
    assert all(re.fullmatch(r"node-\d+: [\d,]+ steps?, \d+ at once", each) for each in loads)
