"""The three authorization methods; the signatures were computed with `openssl dgst -sha256 -hmac`."""

import pytest

from svcctl.api.auth import Bearer, Credentials, HeaderNames, Jwt, Signature, sign
from svcctl.api.wire.messages import Headers, Request


def signed(auth: Credentials, body: bytes = b"") -> Headers:
    request = Request("POST", "https://service.test", Headers(), b"/", body)
    auth.authorize(request)
    return request.headers


@pytest.mark.parametrize(
    ("key", "secret", "body", "timestamp", "expected"),
    [
        ("KEY", "SECRET", b"body", 1700000000000, "ef2fe80cfa5a20574310d4f02b2b00f4496a07078a0bc3c524a6ed6b299eb981"),
        (
            "key-1",
            "s3cr3t",
            '{"query":"from demo.ecommerce.data","from":"1d","note":"ñ€"}'.encode(),
            1536150131123,
            "1266bbe59a3d5ba9f85825241de60550fda1a9b0bd1a36c95efab9abdb7fe10e",
        ),
        ("key-1", "s3cr3t", b"", 0, "8187d8133364182756f8022843795d5b236ffe7b853fc3c709a72cbfef822b37"),
    ],
)
def test_a_signature_is_what_openssl_computes(
    key: str, secret: str, body: bytes, timestamp: int, expected: str
) -> None:
    assert sign(key, secret, body, timestamp) == expected


def test_signed_headers_cover_the_bytes_sent_and_take_the_clock_each_time() -> None:
    moments = iter([1700000000.0, 1700000001.5])
    auth = Signature("KEY", "SECRET", clock=lambda: next(moments))
    first = signed(auth, b"body")
    assert first["x-svc-apikey"] == "KEY"
    assert first["x-svc-timestamp"] == "1700000000000"
    assert first["x-svc-sign"] == "ef2fe80cfa5a20574310d4f02b2b00f4496a07078a0bc3c524a6ed6b299eb981"
    assert first["Content-Type"] == "application/json"
    second = signed(auth, b"body")
    assert second["x-svc-timestamp"] == "1700000001500"
    assert second["x-svc-sign"] != first["x-svc-sign"]


def test_header_names_and_the_resellers_key_header_can_be_changed() -> None:
    names = HeaderNames("x-a-key", "x-a-sign", "x-a-time", reseller_apikey="x-a-reseller")
    auth = Signature("KEY", "SECRET", names, clock=lambda: 1.0)
    domain = signed(auth.of_reseller())
    job = signed(auth)
    assert {name for name in domain if name.startswith("x-a-")} == {"x-a-reseller", "x-a-sign", "x-a-time"}
    assert {name for name in job if name.startswith("x-a-")} == {"x-a-key", "x-a-sign", "x-a-time"}


@pytest.mark.parametrize(("auth", "value"), [(Bearer("t0k"), "Bearer t0k"), (Jwt("t0k"), "jwt t0k")])
def test_a_token_goes_into_the_authorization_header(auth: Bearer | Jwt, value: str) -> None:
    headers = signed(auth)
    assert (headers["Authorization"], headers["Content-Type"]) == (value, "application/json")


@pytest.mark.parametrize("auth", [Signature("KEY", "hidden"), Bearer("hidden"), Jwt("hidden")])
def test_no_secret_is_in_a_repr(auth: object) -> None:
    assert "hidden" not in repr(auth)
