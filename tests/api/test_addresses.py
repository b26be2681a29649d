"""The words for failures of TLS."""

from __future__ import annotations

import ssl

import pytest

from svcctl.api.addresses import tls_failure


@pytest.mark.parametrize(
    ("words", "meaning", "hint"),
    [
        (
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)",
            "its certificate is not accepted: self-signed certificate",
            None,
        ),
        (
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1006)",
            "its certificate is not accepted: certificate has expired",
            "the service must renew it, unless this machine's clock is wrong",
        ),
        (
            "certificate verify failed: Hostname mismatch, certificate is not valid for 'a'. (_ssl.c:1006)",
            "its certificate is not accepted: Hostname mismatch, certificate is not valid for 'a'",
            "check the host in base_url: the certificate is for another name",
        ),
        (
            "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)",
            "the port does not speak TLS",
            "check the port in base_url; plain http, which is for this machine only, begins with http://",
        ),
        (
            "[SSL: TLSV1_ALERT_PROTOCOL_VERSION] tlsv1 alert protocol version (_ssl.c:1006)",
            "it speaks only versions of TLS that are too old",
            "ask whoever runs the service for TLS 1.2 or newer",
        ),
    ],
)
def test_a_failure_of_tls_is_told_in_plain_words(words: str, meaning: str, hint: str | None) -> None:
    assert tls_failure(ssl.SSLError(1, words)) == (meaning, hint)


def test_another_failure_is_not_of_tls() -> None:
    assert tls_failure(ConnectionRefusedError(111, "Connection refused")) is None
