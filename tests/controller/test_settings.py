"""Settings by option, by variable and by default."""

from argparse import ArgumentParser
from pathlib import Path

import pytest

from kfp_placement_controller import main
from kfp_placement_controller.exceptions import SettingsError
from kfp_placement_controller.settings import (
    ExtendSettings,
    PlanSettings,
    ReleaseSettings,
    add_options,
    read_settings,
)


def settings(kind, *arguments, **variables):
    parser = ArgumentParser()
    add_options(parser, kind)
    environment = {f"KFP_PLACEMENT_{name}": value for name, value in variables.items()}
    return read_settings(kind, parser.parse_args(arguments), environment)


def test_nothing_need_be_said():
    values = settings(PlanSettings)
    assert values.own_namespace == "kfp-placement"
    assert values.kubeconfig is None
    assert values.identity


def test_an_option_counts_before_a_variable_and_a_variable_before_the_default():
    assert settings(PlanSettings, "--port", "1", PORT="2").port == 1
    assert settings(PlanSettings, PORT="2").port == 2
    assert settings(PlanSettings, PORT="").port == PlanSettings().port


def test_values_have_types():
    values = settings(ExtendSettings, KUBECONFIG="a/config", REQUEST_TIMEOUT_SECONDS="2.5")
    assert values.kubeconfig == Path("a/config")
    assert values.request_timeout_seconds == 2.5


def test_a_switch_can_be_undone():
    assert settings(ReleaseSettings, "--overdue").overdue
    assert settings(ReleaseSettings, OVERDUE="true").overdue
    assert not settings(ReleaseSettings, "--no-overdue", OVERDUE="true").overdue


@pytest.mark.parametrize(
    ("arguments", "variables"), [(["--log-level", "loud"], {}), ([], {"LOG_LEVEL": "loud"})]
)
def test_a_wrong_value_is_named_with_its_option_and_variable(arguments, variables):
    with pytest.raises(SettingsError, match=r"--log-level \(or KFP_PLACEMENT_LOG_LEVEL\).*'loud'"):
        settings(PlanSettings, *arguments, **variables)


@pytest.mark.parametrize("process", sorted(main.PROCESSES))
def test_every_option_of_every_process_has_help(process, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main([process, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    for name, field in main.PROCESSES[process].model_fields.items():
        assert f"--{name.replace('_', '-')}" in shown
        assert field.description


def test_a_wrong_setting_is_a_usage_error(capsys):
    assert main.main(["plan"], {"KFP_PLACEMENT_PORT": "99999"}) == 2
    assert "KFP_PLACEMENT_PORT" in capsys.readouterr().err
