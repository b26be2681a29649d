"""The words for failures of TLS, as the TLS library raises them."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from support.terminal import need

from svcctl.api.addresses import is_untrusted, tls_failure, trust


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a key, a certificate of the host `a` and one that has expired."""
    need("openssl")
    folder = tmp_path_factory.mktemp("certificates")
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=a -addext subjectAltName=DNS:a"
    for command in (f"{made} -days 9 -keyout key -out good", "x509 -in good -signkey key -days -1 -out expired"):
        subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)
    return folder


def failing(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> ssl.SSLError:
    """The error that a client gets in a handshake, or when it reads after it."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    asks = client.wrap_bio(to_client, to_server, server_hostname=host)
    answers = server.wrap_bio(to_server, to_client, server_side=True)
    for _, side in product(range(4), (asks, answers)):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            if side is asks:
                return error
    with pytest.raises(ssl.SSLError) as caught:
        asks.read()
    return caught.value


def old(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    client.maximum_version, server.minimum_version = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


def other_ciphers(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    client.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    server.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")


def asks_for_a_certificate(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    server.verify_mode = ssl.CERT_REQUIRED


def as_it_is(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    pass


BAD = "its certificate is not accepted: "
ANOTHER_NAME = "check the host in base_url: the certificate is for another name"
REFUSED = (
    "it refused the TLS handshake",
    "the service may require a client certificate, which svcctl does not send, or share no cipher with svcctl",
)


@pytest.mark.parametrize(
    ("change", "trusted", "served", "host", "told"),
    [
        (as_it_is, None, "good", "a", (f"{BAD}self-signed certificate", None)),
        (
            *(as_it_is, "expired", "expired", "a"),
            (
                f"{BAD}certificate has expired",
                "check this machine's clock; if it is right, ask the operator of the service for a new certificate",
            ),
        ),
        (
            *(as_it_is, "good", "good", "b"),
            (f"{BAD}Hostname mismatch, certificate is not valid for 'b'", ANOTHER_NAME),
        ),
        (
            *(as_it_is, "good", "good", "127.0.0.1"),
            (f"{BAD}IP address mismatch, certificate is not valid for '127.0.0.1'", ANOTHER_NAME),
        ),
        (
            *(old, "good", "good", "a"),
            (
                "it only supports versions of TLS that are too old",
                "ask the operator of the service for TLS 1.2 or newer",
            ),
        ),
        (other_ciphers, "good", "good", "a", REFUSED),
        (asks_for_a_certificate, "good", "good", "a", REFUSED),
    ],
)
def test_a_failed_handshake_is_reported_plainly(
    pair: Path,
    change: Callable[[ssl.SSLContext, ssl.SSLContext], None],
    trusted: str | None,
    served: str,
    host: str,
    told: tuple[str, str | None],
) -> None:
    client = ssl.create_default_context(cafile=str(pair / trusted) if trusted else None)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pair / served, pair / "key")
    change(client, server)
    error = failing(client, server, host)
    assert (tls_failure(error), is_untrusted(error)) == (told, trusted is None)


NO_TLS = "check the port in base_url; plain http, which is for this machine only, begins with http://"


@pytest.mark.parametrize(
    ("answer", "meaning", "hint"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the port does not speak TLS", NO_TLS),
        (b"\x16\x03\x03\xff\xff" + b"x" * 10, "the port does not speak TLS", NO_TLS),
        (b"", "the connection was closed during the TLS handshake", NO_TLS),
        (b"\x15\x03\x01\0\x02\x02\x2a", *REFUSED),
    ],
)
def test_an_answer_other_than_a_handshake_is_reported_plainly(answer: bytes, meaning: str, hint: str) -> None:
    received = ssl.MemoryBIO()
    received.write(answer)
    if not answer:
        received.write_eof()
    context = trust(True, ("https://a",))
    assert context is not None
    asks = context.wrap_bio(received, ssl.MemoryBIO(), server_hostname="a")
    with pytest.raises(ssl.SSLError) as caught:
        asks.do_handshake()
    assert (tls_failure(caught.value), is_untrusted(caught.value)) == ((meaning, hint), False)


def test_another_failure_is_not_of_tls() -> None:
    error = ConnectionRefusedError(111, "Connection refused")
    assert (tls_failure(error), is_untrusted(error)) == (None, False)
