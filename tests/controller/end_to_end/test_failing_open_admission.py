"""What admission needs is gone: pods are created all the same, and runs end.

Each test also looks at what tells operators: a condition, a flag, or a metric.
"""

import contextlib
import socket
from collections.abc import Iterator

from kfp_placement_engine.contract.keys import API_VERSION, DEFAULT_SCHEDULER, SCHEDULER_LABEL
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.taxi_runs import executors, schedulers_at_end
from tests.controller.end_to_end.teams import Team, team_of
from tests.controlplane import objects
from tests.controlplane.ports import LOOPBACK, free_ports
from tests.controlplane.waiting import wait_until
from tests.support import manifests
from tests.support.custom_resources import DEFINITION, remove_crds
from tests.support.installation import EXTEND, PLANNER, Installation
from tests.support.manifests import of_kind

STOCK = "default-scheduler"
PLACEMENTS = "pipelineplacements.kfp-placement.dev"
POLICIES = "placementpolicies.kfp-placement.dev"


# The webhook.


@contextlib.contextmanager
def deaf_server() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.create_server((LOOPBACK, 0)) as listening:
        yield listening.getsockname()[1]


@contextlib.contextmanager
def webhook_instead_of_policies(installation: Installation, port: int) -> Iterator[None]:
    """The shipped registration, called by an address; the policies are unbound for a while."""
    api = installation.api
    bindings = list(of_kind(manifests.rendered(), "MutatingAdmissionPolicyBinding"))
    (registration,) = of_kind(manifests.rendered("webhook"), "MutatingWebhookConfiguration")
    for hook in registration["webhooks"]:
        path = hook["clientConfig"]["service"]["path"]
        hook["clientConfig"] = {"url": f"https://{LOOPBACK}:{port}{path}"}
    for binding in bindings:
        api.delete(binding)
    manifests.apply(api, [registration])
    try:
        yield
    finally:
        api.delete(registration)
        manifests.apply(api, bindings)
        with team_of(installation) as team:
            # The server learns of its own policies somewhat later.
            wait_until(lambda: is_marked_now(team), "admission to be back")


def is_marked_now(team: Team) -> bool:
    """Whether a marked pod would be given to our scheduler."""
    pod = objects.pod("trial", team.name, labels={SCHEDULER_LABEL: DEFAULT_SCHEDULER})
    admitted = team.api.create(pod, dryRun="All")
    return bool(admitted["spec"]["schedulerName"] == DEFAULT_SCHEDULER)


def failed_open(installation: Installation) -> float:
    """How often the API server has gone on without a webhook, by its own count."""
    text = installation.api.request("GET", "/metrics")
    name = "apiserver_admission_webhook_fail_open_count{"
    samples = [line for line in text.splitlines() if line.startswith(name)]
    return sum(float(line.rsplit(" ", 1)[1]) for line in samples)


def test_a_webhook_whose_server_is_dead_or_deaf_stops_no_pod(installation, team):
    before = failed_open(installation)
    with deaf_server() as port, webhook_instead_of_policies(installation, port):
        # Until the policies are forgotten, pods are still marked.
        wait_until(lambda: not is_marked_now(team), "the policies to be forgotten")
        deaf = team.submit(chain("deaf", 0.1))
        assert set(schedulers_at_end(team, deaf).values()) == {STOCK}
    after_deaf = failed_open(installation)
    assert after_deaf > before
    (closed,) = free_ports(1)
    with webhook_instead_of_policies(installation, closed):
        wait_until(lambda: not is_marked_now(team), "the policies to be forgotten")
        dead = team.submit(chain("dead", 0.1))
        assert set(schedulers_at_end(team, dead).values()) == {STOCK}
    assert failed_open(installation) > after_deaf


# Our own objects.


@contextlib.contextmanager
def policy_again(installation: Installation) -> Iterator[None]:
    """The policy may go; in the end there is one that says the same."""
    spec = installation.policy()["spec"]
    try:
        yield
    finally:
        wait_until(lambda: policy(installation), "a new policy")
        installation.set_policy(**spec)
        installation.wait_for_flag("schedulerReady", True)


def policy(installation: Installation) -> JsonObject | None:
    return installation.api.find(API_VERSION, "PlacementPolicy", "default")


def count(installation: Installation, metric: str, kind: str, **labels: str) -> float:
    """What planner and extender have counted of a kind."""
    return sum(
        installation.metric(process, metric, kind=kind, **labels) for process in (PLANNER, EXTEND)
    )


def test_a_policy_that_is_deleted_is_made_again(installation, team):
    run = team.submit(chain("without-policy", 1, 0.1, 0.1))
    wait_until(lambda: "s1" in executors(team), "the first step")
    made = count(installation, "api_writes_total", "PlacementPolicy", verb="create")
    with policy_again(installation):
        team.api.delete(installation.policy())
        assert set(schedulers_at_end(team, run)) == {"s1", "s2", "s3"}
    assert count(installation, "api_writes_total", "PlacementPolicy", verb="create") > made
    with team_of(installation) as other:
        later = other.submit(chain("later", 0.1))
        assert set(schedulers_at_end(other, later).values()) == {DEFAULT_SCHEDULER}


@contextlib.contextmanager
def without_definition(installation: Installation, name: str) -> Iterator[None]:
    """A kind of ours that is not there for a while, with all its objects."""
    api = installation.api
    (definition,) = (
        each
        for each in of_kind(manifests.rendered(), DEFINITION)
        if each["metadata"]["name"] == name
    )
    remove_crds(api, [definition])
    try:
        yield
    finally:
        manifests.apply(api, [definition])


def test_the_definition_of_placements_may_go_and_come_back(installation, team):
    run = team.submit(chain("no-placements", 4, 0.2, 0.2))
    wait_until(lambda: team.placement(run), "the plan")
    refused = count(installation, "api_errors_total", "PipelinePlacement")
    with without_definition(installation, PLACEMENTS):
        # Nobody can keep the new plan of this one.
        other = team.submit(chain("meanwhile", 0.1))
        schedulers_at_end(team, other)
        wait_until(
            lambda: count(installation, "api_errors_total", "PipelinePlacement") > refused,
            "our processes to be refused",
        )
    assert schedulers_at_end(team, run)["s3"] == DEFAULT_SCHEDULER
    wait_until(
        lambda: all(team.placement(name) for name in (run, other)), "the placements again", 60
    )


def test_the_definition_of_policies_may_go_and_come_back(installation, team):
    refused = count(installation, "api_errors_total", "PlacementPolicy")
    with policy_again(installation), without_definition(installation, POLICIES):
        run = team.submit(chain("no-policies", 0.1, 0.1))
        schedulers = schedulers_at_end(team, run)
        assert set(schedulers.values()) <= {STOCK, DEFAULT_SCHEDULER}
        wait_until(
            lambda: count(installation, "api_errors_total", "PlacementPolicy") > refused,
            "our processes to be refused",
        )
