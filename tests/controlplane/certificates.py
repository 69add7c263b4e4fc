"""A certificate authority for one control plane, and the key that signs service account tokens."""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = datetime.timedelta(days=7)
# Against clocks that are not quite right.
_EARLIER = datetime.timedelta(hours=1)


@dataclass(frozen=True)
class KeyPair:
    """A private key and its certificate or public key, as PEM files."""

    key: Path
    certificate: Path


class CertificateAuthority:
    """Issues certificates into one folder, all by the same authority.

    Attributes:
        certificate: the authority's own certificate, as a PEM file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("kfp-placement test authority")
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = self._builder(self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        certificate = builder.add_extension(usage, True).sign(self._key, hashes.SHA256())
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def server(
        self, name: str, hosts: Sequence[str] = (), addresses: Sequence[str] = ("127.0.0.1",)
    ) -> KeyPair:
        """A certificate for a server, such as the API server or a webhook.

        Args:
            name: name of the files and common name.
            hosts: DNS names under which it is called, besides `localhost`.
            addresses: IP addresses under which it is called.
        """
        names: list[x509.GeneralName] = [x509.DNSName(host) for host in ("localhost", *hosts)]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        return self._issue(
            name, _name(name), ExtendedKeyUsageOID.SERVER_AUTH, x509.SubjectAlternativeName(names)
        )

    def client(self, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """A certificate by which the API server knows a user and their groups."""
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.COMMON_NAME, user),
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
            ]
        )
        return self._issue(user.replace(":", "-"), subject, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(
        self,
        name: str,
        subject: x509.Name,
        purpose: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None = None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(subject, key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), False)
        if names is not None:
            builder = builder.add_extension(names, False)
        certificate = builder.sign(self._key, hashes.SHA256())
        pair = KeyPair(self._folder / f"{name}.key", self._folder / f"{name}.crt")
        _write_private(pair.key, key)
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return pair

    def _builder(
        self, subject: x509.Name, public: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        authority = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _EARLIER)
            .not_valid_after(now + _LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority), False
            )
        )


def signing_key(folder: Path, name: str) -> KeyPair:
    """A key to sign tokens with; its public half takes the place of a certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    pair = KeyPair(folder / f"{name}.key", folder / f"{name}.pub")
    _write_private(pair.key, key)
    pair.certificate.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return pair


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _write_private(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            # The form that Go's library reads for elliptic curves.
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
