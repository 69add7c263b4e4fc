"""Command lines of the components, from where things are to what is run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.build import Binaries
from tests.controlplane.certificates import CertificateAuthority, KeyPair, signing_key
from tests.controlplane.kubeconfig import User, write_token_file
from tests.controlplane.ports import LOOPBACK


@dataclass(frozen=True)
class Etcd:
    """etcd, which keeps nothing safe: its folder goes with the test.

    Attributes:
        binary: the program.
        folder: folder for its data.
        port: port for clients.
        peer_port: port for other members; there are none.
    """

    binary: Path
    folder: Path
    port: int
    peer_port: int

    @property
    def address(self) -> str:
        """Address for clients."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def command(self) -> tuple[str, ...]:
        """Command line of the component."""
        peers = f"http://{LOOPBACK}:{self.peer_port}"
        return (
            str(self.binary),
            "--name=default",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={self.address}",
            f"--advertise-client-urls={self.address}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync=true",
            # 8 GiB instead of 2: large runs are part of the tests.
            f"--quota-backend-bytes={8 * 2**30}",
            "--log-level=warn",
        )


@dataclass(frozen=True)
class ApiServer:
    """kube-apiserver with RBAC, static tokens, client certificates and service account tokens.

    Attributes:
        binary: the program.
        etcd: address of etcd.
        port: port at which it serves.
        serving: certificate of the server.
        authority: certificate of the authority that clients' certificates are checked by.
        tokens: the file of static tokens.
        accounts: the key that signs and checks service account tokens.
        flags: additional flags; of one given twice the last counts.
    """

    binary: Path
    etcd: str
    port: int
    serving: KeyPair
    authority: Path
    tokens: Path
    accounts: KeyPair
    flags: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """Address at which the component serves."""
        return f"https://{LOOPBACK}:{self.port}"

    @property
    def command(self) -> tuple[str, ...]:
        """Command line of the component."""
        return (
            str(self.binary),
            f"--etcd-servers={self.etcd}",
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            f"--secure-port={self.port}",
            f"--tls-cert-file={self.serving.certificate}",
            f"--tls-private-key-file={self.serving.key}",
            f"--client-ca-file={self.authority}",
            # Nobody is a front proxy; without an authority for them every component complains.
            f"--requestheader-client-ca-file={self.authority}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--token-auth-file={self.tokens}",
            f"--service-account-issuer={self.address}/",
            f"--service-account-key-file={self.accounts.certificate}",
            f"--service-account-signing-key-file={self.accounts.key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            # It refuses to publish a loopback address as an endpoint.
            "--endpoint-reconciler-type=none",
            *self.flags,
        )


def api_server(
    binaries: Binaries,
    folder: Path,
    etcd: Etcd,
    port: int,
    users: Iterable[User],
    flags: Sequence[str] = (),
) -> ApiServer:
    """The API server with everything it reads written into the folder."""
    authority = CertificateAuthority(folder)
    tokens = folder / "tokens.csv"
    write_token_file(tokens, users)
    return ApiServer(
        binary=binaries.kube_apiserver,
        etcd=etcd.address,
        port=port,
        serving=authority.server("kube-apiserver", addresses=(LOOPBACK, "10.0.0.1")),
        authority=authority.certificate,
        tokens=tokens,
        accounts=signing_key(folder, "service-accounts"),
        flags=tuple(flags),
    )


def controller_manager_command(
    binary: Path, kubeconfig: Path, port: int, server: ApiServer, flags: Sequence[str]
) -> tuple[str, ...]:
    """kube-controller-manager: garbage collection, service accounts, node lifecycle, claims."""
    return (
        str(binary),
        *_as_client(kubeconfig, port),
        f"--kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={server.accounts.key}",
        f"--root-ca-file={server.authority}",
        "--leader-elect=false",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        *flags,
    )


def scheduler_command(
    binary: Path, kubeconfig: Path, port: int, configuration: Path, flags: Sequence[str]
) -> tuple[str, ...]:
    """kube-scheduler; the configuration names the kubeconfig once more."""
    return (str(binary), *_as_client(kubeconfig, port), f"--config={configuration}", *flags)


def scheduler_configuration(given: dict[str, Any], kubeconfig: Path) -> dict[str, Any]:
    """A KubeSchedulerConfiguration with what only the control plane knows.

    Leader election is off unless it is asked for: it takes seconds.
    """
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **given,
        "leaderElection": given.get("leaderElection", {"leaderElect": False}),
        "clientConnection": {
            "qps": 200,
            "burst": 400,
            **given.get("clientConnection", {}),
            "kubeconfig": str(kubeconfig),
        },
    }


def kwok_command(binary: Path, kubeconfig: Path, port: int, stages: Path) -> tuple[str, ...]:
    """kwok for all nodes, by the stages of a file."""
    return (
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--config={stages}",
        f"--server-address={LOOPBACK}:{port}",
        "--manage-all-nodes=true",
        "--cidr=10.128.0.0/16",
        "--node-ip=10.0.0.1",
        "--node-lease-duration-seconds=40",
    )


def _as_client(kubeconfig: Path, port: int) -> tuple[str, ...]:
    return (
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
    )
