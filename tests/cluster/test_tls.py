"""Certificates are verified, and neither they nor a refusal let credentials out."""

import datetime
import ipaddress
import logging
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sage.cluster.connection import Connection
from sage.cluster.options import cluster_options
from sage.deadline import Deadline
from sage.errors import ConfigError, SageError, Unavailable
from tests.cluster.test_connection import Cluster, cluster

__all__ = ["cluster"]

SECRET = "geheimnis"
ENVIRONMENT = {"SAGE_OPENSEARCH_USER": "ada", "SAGE_OPENSEARCH_PASSWORD": SECRET}


@dataclass(frozen=True)
class Secure:
    """A cluster behind a certificate of its own, and where that lies."""

    cluster: Cluster
    certificate: Path

    @property
    def port(self) -> int:
        return int(self.cluster.server_address[1])

    def ask(self, host: str = "127.0.0.1", ca_file: Path | None = None) -> None:
        options = cluster_options(
            [f"https://{host}:{self.port}"], "sage", ENVIRONMENT, None, ca_file
        )
        with Connection(options, sleep=lambda _: None) as connection:
            connection.check_version(Deadline(30_000))


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that only its own holder trusts, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a cluster of the tests")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "certificate.pem", folder / "key.pem"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return public, private


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[Secure]:
    public, private = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    with Cluster() as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Secure(server, public)
        server.shutdown()
        thread.join()


def test_a_certificate_that_is_named_is_trusted(secure: Secure) -> None:
    secure.ask(ca_file=secure.certificate)
    assert len(secure.cluster.seen) == 1


def test_a_certificate_that_nobody_vouches_for_is_refused(secure: Secure) -> None:
    with pytest.raises(Unavailable, match="certificate"):
        secure.ask()
    assert secure.cluster.seen == []  # no request, so no credentials either


def test_a_certificate_for_another_name_is_refused(secure: Secure) -> None:
    with pytest.raises(Unavailable, match="certificate"):
        secure.ask("localhost", secure.certificate)
    assert secure.cluster.seen == []


def test_a_node_that_speaks_no_tls_is_told_as_that(cluster: Cluster) -> None:
    with pytest.raises(Unavailable, match="there is no TLS at this address: write http://"):
        Secure(cluster, Path()).ask()
    assert cluster.seen == []


def test_a_file_without_certificates_is_said(secure: Secure, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing\n")
    with pytest.raises(ConfigError, match="holds no certificates"):
        secure.ask(ca_file=empty)


@pytest.mark.parametrize("status", [200, 401, 403, 500, 503])
def test_no_message_and_no_log_holds_credentials(
    secure: Secure, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    secure.cluster.status = status
    said = ""
    with caplog.at_level(logging.DEBUG):
        try:
            secure.ask(ca_file=secure.certificate)
        except SageError as error:
            said = repr(error)
    assert secure.cluster.seen
    assert SECRET not in said + caplog.text
    assert "YWRhOm" not in said + caplog.text  # ada: in base64
