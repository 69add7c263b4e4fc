"""The webhook's certificate, which is renewed while the process runs.

A module of its own because the process that uses it only connects parts.
"""

import asyncio
import ssl
from pathlib import Path

from kfp_placement_controller.exceptions import SettingsError
from kfp_placement_controller.warning_log import WarningLog

CERTIFICATE_CHECK_SECONDS = 10.0
"""Pause between two looks at the webhook's certificate files; kubelets replace them in place."""


class CertificateFiles:
    """The webhook's certificate and key; new files are used for the next connection."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read both files.

        Raises:
            SettingsError: the certificate cannot be used.
        """
        self._files = (certificate, key)
        self._warnings = WarningLog(__name__)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # Each new handshake within a connection would cost us more than who asks for it.
        self.context.options |= ssl.OP_NO_RENEGOTIATION
        try:
            self._load()
        except OSError as error:
            raise SettingsError(f"the webhook's certificate {certificate}: {error}") from error

    def check(self) -> None:
        """Read the files again; bad ones leave the old in use."""
        try:
            self._load()
        except OSError as error:
            self._warnings.warn(
                f"the webhook's certificate {self._files[0]} is not renewed: {error}"
            )

    async def keep_checking(self, every_seconds: float = CERTIFICATE_CHECK_SECONDS) -> None:
        """Check repeatedly, until cancelled."""
        while True:
            await asyncio.sleep(every_seconds)
            self.check()

    def _load(self) -> None:
        # On trial first: a key that does not fit would leave the one in use without any.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*self._files)
        self.context.load_cert_chain(*self._files)
