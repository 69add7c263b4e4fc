"""Where the extender listens, as its settings say, and the certificate that it shows there."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kfp_placement_controller.exceptions import SettingsError
from kfp_placement_controller.extender.answers import Answers
from kfp_placement_controller.extender.app import (
    CertificateFiles,
    Listener,
    listening,
    probe_application,
    scheduler_application,
    webhook_application,
)
from kfp_placement_controller.settings import ExtendSettings

LOOPBACK = "127.0.0.1"
"""Only the scheduler in the same pod asks; nobody else has to be let in."""


class Listeners:
    """For the scheduler and probes, and for admission if there is a certificate."""

    def __init__(
        self,
        settings: ExtendSettings,
        answers: Answers,
        is_synced: Callable[[], bool],
        stuck: Callable[[], str],
    ) -> None:
        """Read the certificate; no port is opened yet.

        Args:
            settings: of the process.
            answers: to the scheduler and to admission.
            is_synced: everything is known.
            stuck: what is broken and only a restart fixes; "" = nothing.

        Raises:
            SettingsError: the certificate cannot be used.
        """
        self._settings = settings
        self._answers = answers
        self._is_synced = is_synced
        self._stuck = stuck
        self._certificates = _certificates(settings)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[list[int]]:
        """Serve as long as the context lasts; gives the ports.

        Raises:
            SettingsError: a port cannot be opened.
        """
        async with listening(*self._listeners()) as ports, _kept_current(self._certificates):
            yield ports

    def _listeners(self) -> list[Listener]:
        settings, answers, is_synced = self._settings, self._answers, self._is_synced
        probes = probe_application(is_synced, self._stuck)
        listeners = [
            Listener(scheduler_application(answers, is_synced), LOOPBACK, settings.extender_port),
            Listener(probes, None, settings.probe_port),
        ]
        if self._certificates is not None:
            hook, context = webhook_application(answers, is_synced), self._certificates.context
            listeners.append(Listener(hook, None, settings.webhook_port, context))
        return listeners


def _certificates(settings: ExtendSettings) -> CertificateFiles | None:
    certificate, key = settings.webhook_certificate, settings.webhook_key
    if certificate is None and key is None:
        if settings.queues:
            raise SettingsError(
                "--queues holds runs by the webhook, which needs --webhook-certificate and"
                " --webhook-key"
            )
        return None
    if certificate is None or key is None:
        raise SettingsError(
            "the webhook needs both --webhook-certificate and --webhook-key, or neither"
        )
    return CertificateFiles(certificate, key)


@asynccontextmanager
async def _kept_current(certificates: CertificateFiles | None) -> AsyncIterator[None]:
    """Keep the certificate up to date as long as the context lasts."""
    if certificates is None:
        yield
        return
    task = asyncio.create_task(certificates.keep_checking())
    try:
        yield
    finally:
        task.cancel()
