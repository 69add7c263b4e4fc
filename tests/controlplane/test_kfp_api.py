"""The stand-in of KFP's API: who may read which run is decided by the control plane."""

import json
import time
import urllib.error
import urllib.request

import pytest

from tests.controlplane import kfp_api, objects
from tests.controlplane.housekeeping import account_token
from tests.controlplane.kfp_api import AUDIENCE, KfpApi, StoredRun, serving_kfp_api
from tests.controlplane.waiting import wait_until

PIPELINE = {"pipelineInfo": {"name": "p"}}
PLATFORM: dict = {"platforms": {"kubernetes": {}}}
RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def served(api):
    """KFP's API beside the shared control plane."""
    with serving_kfp_api(api) as running:
        yield running


@pytest.fixture
def reader(api, namespace):
    """Token of an account that may read the run `run-1` of its namespace, and no other."""
    api.create(objects.an_object("v1", "ServiceAccount", "reader", namespace))
    rule = {
        "apiGroups": ["pipelines.kubeflow.org"],
        "resources": ["runs"],
        "resourceNames": ["run-1"],
        "verbs": ["get"],
    }
    api.create(objects.an_object(f"{RBAC}/v1", "Role", "reader", namespace, rules=[rule]))
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
    reference = {"apiGroup": RBAC, "kind": "Role", "name": "reader"}
    api.create(
        objects.an_object(
            f"{RBAC}/v1", "RoleBinding", "reader", namespace, roleRef=reference, subjects=[subject]
        )
    )
    return account_token(api, namespace, "reader", AUDIENCE)


@pytest.fixture
def run(served, namespace):
    """A run that the API has stored."""
    stored = StoredRun("id-1", namespace, "run-1", [PIPELINE])
    served.store(stored)
    return stored


def ask(served: KfpApi, run_id: str = "id-1", token: str = "", view: str = "?view=FULL"):
    """Status and body of an answer."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"{served.address}/apis/v2beta1/runs/{run_id}{view}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def wait_for_right(served: KfpApi, token: str) -> None:
    """Wait until the authorizer has seen the binding."""
    wait_until(lambda: ask(served, token=token)[0] == 200, "the binding to count")


def test_the_package_is_given_in_both_forms(served, reader, run, namespace):
    wait_for_right(served, reader)
    status, body = ask(served, token=reader)
    assert (status, body["run_id"], body["pipeline_spec"]) == (200, "id-1", PIPELINE)
    served.store(StoredRun("id-1", namespace, "run-1", [PIPELINE, PLATFORM]))
    both = {"pipeline_spec": PIPELINE, "platform_spec": PLATFORM}
    assert ask(served, token=reader)[1]["pipeline_spec"] == both
    assert "pipeline_spec" not in ask(served, token=reader, view="")[1]


def test_who_may_read_is_decided_by_the_control_plane(api, served, reader, run, namespace):
    wait_for_right(served, reader)
    served.store(StoredRun("id-2", namespace, "run-2", [PIPELINE]))
    served.store(StoredRun("id-3", "default", "run-1", [PIPELINE]))
    for_the_api_server = account_token(api, namespace, "reader")
    others = account_token(api, namespace, "default", AUDIENCE)
    assert ask(served)[0] == 401
    assert ask(served, token="none")[0] == 401
    assert ask(served, token=for_the_api_server)[0] == 401
    assert ask(served, token=others)[0] == 403
    assert ask(served, "id-2", reader)[0] == 403
    assert ask(served, "id-3", reader)[0] == 403
    assert ask(served, "id-4", reader)[0] == 404


def test_an_experiment_says_its_namespace_to_those_who_may_read_experiments(
    api, served, reader, run, namespace
):
    wait_for_right(served, reader)
    path = (
        f"{served.address}/apis/v2beta1/experiments/{ask(served, token=reader)[1]['experiment_id']}"
    )
    request = urllib.request.Request(path, headers={"Authorization": f"Bearer {reader}"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request)
    role = api.get(f"{RBAC}/v1", "Role", "reader", namespace)
    rule = {"apiGroups": ["pipelines.kubeflow.org"], "resources": ["experiments"], "verbs": ["get"]}
    api.patch(role, {"rules": [*role["rules"], rule]})

    def answered():
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)
        except urllib.error.HTTPError:
            return None

    assert wait_until(answered, "the right to count")["namespace"] == namespace


def test_a_run_may_be_stored_later(served, reader, namespace):
    hour_later = time.monotonic() + 3600
    served.store(StoredRun("id-1", namespace, "run-1", [PIPELINE], hour_later))
    assert ask(served, token=reader)[0] == 404
    later = time.monotonic() + 0.5
    served.store(StoredRun("id-1", namespace, "run-1", [PIPELINE], later))
    wait_for_right(served, reader)
    assert served.requests[-1].at_seconds >= later


def test_troubles(served, reader, run):
    wait_for_right(served, reader)
    served.trouble = kfp_api.refusing(503)
    assert ask(served, token=reader)[0] == 503
    served.trouble = kfp_api.waiting(0.3)
    start = time.monotonic()
    assert ask(served, token=reader)[0] == 200
    assert time.monotonic() - start >= 0.3
    served.trouble = kfp_api.answering_for(StoredRun("id-9", "x", "y", [PIPELINE]))
    assert ask(served, token=reader)[1]["run_id"] == "id-9"
    for states_length in (True, False):
        served.trouble = kfp_api.large(9, states_length=states_length)
        assert len(ask(served, token=reader)[1]["pipeline_spec"]["x"]) == 9 * 2**20
    served.trouble = kfp_api.deep()
    with pytest.raises(RecursionError):
        ask(served, token=reader)
    served.trouble = kfp_api.dripping(0.3)
    with pytest.raises(json.JSONDecodeError):
        ask(served, token=reader)


def test_a_redirect_shows_whether_a_token_follows(api, served, reader, run):
    """The client of Python's library takes the token along."""
    with serving_kfp_api(api) as other:
        served.trouble = kfp_api.redirecting(other.address)
        assert ask(served, token=reader)[0] == 404
        (received,) = other.requests
    assert received.headers["authorization"] == f"Bearer {reader}"
    assert received.target == "/apis/v2beta1/runs/id-1?view=FULL"
