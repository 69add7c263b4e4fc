"""The process `admit`: the webhook that changes new pods and runs, and the watches it needs.

It is apart from `extend`: its port is open to everybody, and a flood of questions, or bodies that
never end, must harm nothing but admission, which Kubernetes then does without.
"""

import asyncio

from kfp_placement_controller.connection import connect
from kfp_placement_controller.extender.answers import Answers
from kfp_placement_controller.extender.app import serve_until_signal, webhook_listener
from kfp_placement_controller.extender.certificates import CertificateFiles
from kfp_placement_controller.extender.knowledge_store import KnowledgeStore
from kfp_placement_controller.kinds import POLICIES, RUN_QUEUES
from kfp_placement_controller.loops.garbage import keep_what_is_there, look_less_often
from kfp_placement_controller.observed.run_queues import observe_readiness
from kfp_placement_controller.parts import working
from kfp_placement_controller.probes import ProbeServer
from kfp_placement_controller.settings import AdmitSettings
from kfp_placement_controller.sources import DEFAULT_SOURCES, QUEUE_SOURCES
from kfp_placement_controller.watches.watch_group import WatchGroup
from kfp_placement_engine.contract.custom_resources import read_stored_policy
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_kube.access import Need, check_access
from kfp_placement_kube.client import KubeClient


def needs(settings: AdmitSettings) -> list[Need]:
    """Return the rights that the process needs at the API server."""
    return [Need(POLICIES), *([Need(RUN_QUEUES)] if settings.queues else [])]


def run(settings: AdmitSettings) -> int:
    """Run until we are asked to stop; returns the exit code.

    Raises:
        SettingsError: a setting is not what we need.
        KubeError: the cluster or our rights are not sufficient.
    """
    client = connect(settings)
    check_access(client, needs(settings))
    look_less_often()
    AdmitProcess(settings, client).run()
    return 0


class AdmitProcess:
    """The process `admit`: its watches and its webhook."""

    def __init__(self, settings: AdmitSettings, client: KubeClient) -> None:
        """Connect everything without starting it.

        Raises:
            SettingsError: the certificate cannot be used, or a port cannot be opened.
        """
        self._certificates = CertificateFiles(settings.webhook_certificate, settings.webhook_key)
        store = KnowledgeStore(DEFAULT_SOURCES)
        self._watches = WatchGroup(client)
        self._watches.add(
            POLICIES, lambda raw: read_stored_policy(raw).policy, store.policy_changed
        )
        if settings.queues:
            default = f"metadata.name={DEFAULT_QUEUE}"
            changed = store.queue_changed
            self._watches.add(RUN_QUEUES, observe_readiness, changed, field_selector=default)
        answers = Answers(
            lambda: store.knowledge, lambda *_: None, settings.own_namespace, QUEUE_SOURCES
        )
        is_synced, context = self._watches.is_synced, self._certificates.context
        self._listener = webhook_listener(answers, is_synced, settings.webhook_port, context)
        self._probes = ProbeServer(None, settings.probe_port, self._hangs, self._watches.unready)

    def run(self) -> None:
        """Watch and answer until SIGTERM or SIGINT."""
        keep_what_is_there()
        with working(self._probes, self._watches):
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        checking = asyncio.create_task(self._certificates.keep_checking())
        try:
            await serve_until_signal(self._listener)
        finally:
            checking.cancel()

    def _hangs(self) -> str:
        return "; ".join(self._watches.hanging())
