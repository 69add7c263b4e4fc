"""A process in a pod finds the API server and its account where the kubelet puts them."""

import subprocess
import sys

import pytest

from kfp_placement_kube.exceptions import ConfigurationError
from kfp_placement_kube.service_account import (
    bearer,
    is_in_pod,
    load_service_account,
    service_account_namespace,
)
from tests.controlplane.pod_account import write_pod_account

WITHOUT_THE_CLIENT = """
import sys
sys.modules["kubernetes"] = None
from pathlib import Path
from kfp_placement_kube.exceptions import ConfigurationError
from kfp_placement_kube.kubeconfig import load_kubeconfig
try:
    load_kubeconfig(Path("config"))
except ConfigurationError as error:
    print(error)
"""


class Clock:
    """Stands still until a test sets it."""

    seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def account(tmp_path):
    authority = tmp_path / "authority.crt"
    authority.write_text("CERTIFICATE")
    folder = tmp_path / "serviceaccount"
    return write_pod_account(folder, "https://10.96.0.1:443", authority, "old\n", "team-a")


def test_a_pod_knows_its_server_its_account_and_its_namespace(account, monkeypatch):
    loaded = load_service_account(account.folder, account.variables)
    assert loaded.server == "https://10.96.0.1:443"
    assert loaded.authorization() == "Bearer old"
    assert loaded.authority_file == account.folder / "ca.crt"
    assert loaded.verifies_server
    assert service_account_namespace(account.folder) == "team-a"
    for name, value in account.variables.items():
        monkeypatch.setenv(name, value)
    assert is_in_pod(account.folder)
    assert not is_in_pod(account.folder / "elsewhere")


def test_the_address_may_be_of_version_6(account):
    variables = {**account.variables, "KUBERNETES_SERVICE_HOST": "fd00::1"}
    assert load_service_account(account.folder, variables).server == "https://[fd00::1]:443"


def test_a_token_that_the_kubelet_renews_counts_within_a_minute(account):
    clock = Clock()
    loaded = load_service_account(account.folder, account.variables, clock)
    (account.folder / "token").write_text("new")
    clock.seconds = 59.0
    assert loaded.authorization() == "Bearer old"
    clock.seconds = 60.0
    assert loaded.authorization() == "Bearer new"


@pytest.mark.parametrize("gone", [True, False])
def test_the_last_token_counts_while_there_is_none(account, gone):
    clock = Clock()
    loaded = load_service_account(account.folder, account.variables, clock)
    token = account.folder / "token"
    token.unlink() if gone else token.write_text("")
    clock.seconds = 60.0
    assert loaded.authorization() == "Bearer old"


@pytest.mark.parametrize("file", ["token", "ca.crt"])
@pytest.mark.parametrize("content", [None, b" ", b"\xff"])
def test_an_account_that_cannot_be_read_is_named(account, file, content):
    path = account.folder / file
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=file):
        load_service_account(account.folder, account.variables)


def test_a_token_for_another_service_is_read_afresh_each_time(tmp_path):
    file = tmp_path / "token"
    for token in ("first", "second"):
        file.write_text(f"{token}\n")
        assert bearer(file) == f"Bearer {token}"
    file.write_text(" \n")
    with pytest.raises(ConfigurationError, match="is empty"):
        bearer(file)
    file.unlink()
    with pytest.raises(ConfigurationError, match="No such file"):
        bearer(file)


@pytest.mark.parametrize("name", ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"])
@pytest.mark.parametrize("value", [None, ""])
def test_outside_of_a_cluster_the_variables_are_missing(account, name, value):
    variables = {key: text for key, text in account.variables.items() if key != name}
    if value is not None:
        variables[name] = value
    with pytest.raises(ConfigurationError, match=name):
        load_service_account(account.folder, variables)


def test_a_kubeconfig_without_the_official_client_says_what_to_install():
    command = [sys.executable, "-c", WITHOUT_THE_CLIENT]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "pip install 'kfp-placement-kube[kubeconfig]'" in result.stdout
