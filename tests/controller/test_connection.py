"""How a process finds its API server, and by which name it is known there."""

import pytest

from kfp_placement_controller.connection import connect
from kfp_placement_controller.exceptions import SettingsError
from kfp_placement_controller.settings import PlanSettings
from tests.controlplane.kubeconfig import write_kubeconfig
from tests.support.web_server import sending, web_server


def test_requests_name_the_program(tmp_path):
    asked = []

    def answer(request):
        asked.append(request.headers["User-Agent"])
        sending(b"{}")(request)

    with web_server({"/version": answer}) as address:
        authority = tmp_path / "none"
        authority.touch()
        kubeconfig = write_kubeconfig(tmp_path / "config", address, authority, "t")
        assert connect(PlanSettings(kubeconfig=kubeconfig)).get_path("/version") == {}
    assert asked[0].startswith("kfp-placement-controller/")


@pytest.mark.parametrize("kubeconfig", ["missing", "empty", "list", None])
def test_without_a_configuration_the_message_says_what_to_do(tmp_path, kubeconfig):
    (tmp_path / "empty").touch()
    (tmp_path / "list").write_text("[]")
    path = None if kubeconfig is None else tmp_path / kubeconfig
    with pytest.raises(SettingsError, match="--kubeconfig"):
        connect(PlanSettings(kubeconfig=path))
