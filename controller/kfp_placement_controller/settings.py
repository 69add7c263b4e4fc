"""Settings of the processes: options of the command line, else variables, else the defaults here.

Every field is an option (`own_namespace`: `--own-namespace`) and a variable of the environment
(`KFP_PLACEMENT_OWN_NAMESPACE`); its docstring is the option's help.
"""

import socket
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kfp_placement_controller.exceptions import SettingsError
from kfp_placement_kube.service_account import SERVICE_ACCOUNT_FOLDER

VARIABLE_PREFIX = "KFP_PLACEMENT_"

SettingsT = TypeVar("SettingsT", bound="Settings")


class Settings(BaseModel):
    """Settings that all processes have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    process: ClassVar[str] = ""
    """Name of the process."""

    purpose: ClassVar[str]
    """Purpose of the process, in a line."""

    own_namespace: str = Field(default="kfp-placement", min_length=1, max_length=63)
    """Namespace of the controller: its Leases are there, and its pods are never planned."""

    kubeconfig: Path | None = None
    """File that names the cluster and the account; without: the pod's service account."""

    service_account: Path = SERVICE_ACCOUNT_FOLDER
    """Folder with the token and the authority of that account, as the kubelet writes it."""

    identity: str = Field(default_factory=socket.gethostname, min_length=1, max_length=253)
    """Name of this process among its replicas; by default the host's, in a cluster the pod's."""

    request_timeout_seconds: float = Field(default=30.0, gt=0, le=600)
    """Longest duration of one request to the API server; the server itself gives up after 60."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest severity of messages that are written to the standard error stream."""

    scheduler_lease_name: str = Field(default="kfp-placement-scheduler", min_length=1)
    """Lease of our scheduler, in the own namespace; its age says whether it is alive."""

    planner_lease_name: str = Field(default="kfp-placement-planner", min_length=1)
    """Lease of the planner, in the own namespace."""

    queue_lease_name: str = Field(default="kfp-placement-queue", min_length=1)
    """Lease of the queue, in the own namespace."""


class LeadingSettings(Settings):
    """Settings of processes of which one replica leads."""

    port: int = Field(default=8080, ge=0, le=65535)
    """Port of /healthz, /readyz and /metrics; 0 = one that is free."""

    address: str = "0.0.0.0"
    """Address that this port is opened on."""


class PlanSettings(LeadingSettings):
    """Settings of `plan`."""

    process = "plan"
    purpose = "plan every run and write its PipelinePlacement"

    gates: bool = False
    """Gates are installed; without, the policy never says that pods may be gated."""

    queues: bool = False
    """Queues of runs are installed; without, RunQueues are not looked at."""

    history: bool = False
    """Histories of pipelines are installed; without, ended runs are not learned from."""

    templates: bool = False
    """WorkflowTemplates may be read; without, runs are read with what Argo has stored only."""

    opt_in: bool = False
    """Plan only namespaces labelled kfp-placement.dev/enabled=true; without, all but =false."""

    kfp_api_address: str = Field(default="", pattern=r"^(https?://[^\s/?#@]+/?)?$")
    """Address of KFP's API, such as http://ml-pipeline.kubeflow:8888; without, it is not asked."""

    kfp_api_authority: Path | None = None
    """Certificates that the certificate of KFP's API is checked by, PEM; without: the system's."""

    kfp_api_token: Path | None = None
    """File with a token for KFP's API, read for every request; without: none is sent."""

    kfp_namespace: str = Field(default="kubeflow", min_length=1, max_length=63)
    """Namespace of all runs of a KFP for a single user, whose experiments name none."""


class ExtendSettings(Settings):
    """Settings of `extend`."""

    process = "extend"
    purpose = "answer our scheduler"

    extender_port: int = Field(default=8888, ge=0, le=65535)
    """Port of the scheduler's questions, open to the same pod only; 0 = one that is free."""

    probe_port: int = Field(default=8889, ge=0, le=65535)
    """Port of /healthz, /readyz and /metrics; 0 = one that is free."""


class AdmitSettings(Settings):
    """Settings of `admit`."""

    process = "admit"
    purpose = "admit pods and runs by a webhook, where the API server cannot do so itself"

    webhook_port: int = Field(default=9443, ge=0, le=65535)
    """Port of the webhook; 0 = one that is free."""

    webhook_certificate: Path
    """Certificate of the webhook, PEM."""

    webhook_key: Path
    """Key of that certificate, PEM."""

    probe_port: int = Field(default=8890, ge=0, le=65535)
    """Port of /healthz, /readyz and /metrics; 0 = one that is free."""

    queues: bool = False
    """Hold new runs for their queues; without, RunQueues are not looked at."""


class QueueSettings(LeadingSettings):
    """Settings of `queue`."""

    process = "queue"
    purpose = "hold whole runs until their queue admits them"

    opt_in: bool = False
    """Queue only in namespaces labelled kfp-placement.dev/enabled=true; without, all but =false."""


class ReleaseSettings(Settings):
    """Settings of `release`."""

    process = "release"
    purpose = "free pods and runs that wait for us, even where our processes are dead"

    overdue: bool = False
    """Release only what is past its deadline, and leave the policy as it is."""

    pods: bool = True
    """Take our gates off pods."""

    runs: bool = False
    """Let runs begin that wait in queues."""

    dry_run: bool = False
    """Report what would be done, and do nothing."""


def add_options(parser: ArgumentParser, kind: type[Settings]) -> None:
    """Add an option for every field."""
    for name, field in kind.model_fields.items():
        flag = field.annotation is bool
        is_stated = not field.is_required() and field.default_factory is None
        has_default = is_stated and field.default is not None
        default = f" [{field.default}]" if has_default else ""
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            dest=name,
            default=None,
            help=f"{field.description}{'' if flag else default}".replace("%", "%%"),
            **(
                {"action": BooleanOptionalAction}
                if flag
                else {"metavar": name.rpartition("_")[2].upper()}
            ),
        )


def read_settings(
    kind: type[SettingsT], options: Namespace, environment: Mapping[str, str]
) -> SettingsT:
    """Read the settings of a process.

    Args:
        kind: class of the settings.
        options: the command line as parsed; None = not given.
        environment: environment variables of the process.

    Raises:
        SettingsError: a value cannot be used; the message names the option.
    """
    given: dict[str, object] = {}
    for name in kind.model_fields:
        option = getattr(options, name, None)
        variable = environment.get(f"{VARIABLE_PREFIX}{name.upper()}")
        if option is not None or variable:
            given[name] = variable if option is None else option
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        raise SettingsError(
            f"--{name.replace('_', '-')} (or {VARIABLE_PREFIX}{name.upper()}): {first['msg']},"
            f" not {given.get(name)!r:.80}"
        ) from error
