"""Names that were mistyped, plurals and sizes, values of JSON, secrets."""

from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svcctl.words import (
    among,
    counted,
    did_you_mean,
    having_word,
    is_secret,
    json_text,
    mask,
    mask_urls,
    nearest,
    size_text,
)

COLUMNS = ["eventdate", "method", "statusCode", "uri"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("statuscode", "statusCode"),
        ("METHOD", "method"),
        ("evendate", "eventdate"),
        ("rui", "uri"),
        ("method", None),  # it is known
        ("responseTime", None),
        ("", None),
    ],
)
def test_the_nearest_known_name_is_suggested_whatever_its_case(name: str, meant: str | None) -> None:
    assert nearest(name, COLUMNS) == meant


def test_a_suggestion_is_a_hint() -> None:
    assert did_you_mean("metod", COLUMNS) == "did you mean 'method'?"
    assert did_you_mean("responseTime", COLUMNS) is None


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("code", "statusCode"),
        ("stat", "statusCode"),
        ("ip", "clientIpAddress"),
        ("log", "web_log"),
        ("even", None),  # of two
        ("tus", None),  # no word
        ("e", None),
        ("log2", None),
    ],
)
def test_the_only_name_with_the_word_is_suggested(name: str, meant: str | None) -> None:
    known = [*COLUMNS, "clientIpAddress", "eventsSent", "web_log"]
    assert having_word(name, known) == meant
    assert did_you_mean(name, known) == (meant and f"did you mean '{meant}'?")
    assert did_you_mean(name, known, words=False) is None


def test_of_many_names_the_nearest_and_the_first_are_told() -> None:
    names = [f"logs.t{at:02}" for at in range(26)]
    assert among("web", names, "tables") == f"tables are {', '.join(names[:20])} and 6 more"
    assert among("logs.t2", names[:3], "tables") == "did you mean 'logs.t02'? tables are logs.t00, logs.t01, logs.t02"
    assert among("web", [], "tables") is None


@pytest.mark.parametrize(
    ("number", "words", "said"),
    [
        (1, ("query",), "1 query"),
        (2, ("query",), "2 queries"),
        (7, ("day",), "7 days"),
        (0, ("file is", "files are"), "0 files are"),
        (1200, ("row",), "1,200 rows"),
    ],
)
def test_a_number_of_things_has_its_plural(number: int, words: tuple[str, ...], said: str) -> None:
    assert counted(number, *words) == said


@pytest.mark.parametrize(
    ("size", "said"),
    [
        *(
            (1, "1 byte"),
            (812, "812 bytes"),
            (1000, "1.0 kB"),
            (56_400, "56 kB"),
            (1_234_000, "1.2 MB"),
            (5e10, "50 GB"),
        ),
        *((999_499, "999 kB"), (999_500, "1.0 MB"), (9_949_000, "9.9 MB"), (9_951_000, "10 MB")),
    ],
)
def test_a_size_is_printed_in_its_unit(size: float, said: str) -> None:
    assert size_text(size) == said


SECRETS = (
    *("aws.SecretKey", "aws_secret_access_key", "aws.session.token", "fs.s3a.secret.key", "fs.s3a.session.token"),
    *("fs.s3a.encryption.key", "fs.azure.account.key.logs", "sse.customer.key", "file.password", "X-My-Token"),
    *("sasl.password", "sasl.jaas.config", "sasl.oauthbearer.config", "sasl.oauthbearer.client.secret"),
    *("sasl.oauthbearer.assertion.private.key.pem", "sasl.oauthbearer.assertion.private.key.passphrase"),
    *("ssl.key.pem", "SSL.KEY.PEM", "ssl.key.password", "ssl.keystore.key", "ssl.keystore.password", "ssl.keystore"),
    *("client.pem", "privateKeyPem", "private_key", "privateKey", "ssl_key", "basic.auth.user.info", "gcs.credentials"),
    *("gcs.credentials.json", "api.key", "apiKey", "db.pwd", "client.p12", "sasl_jaas_config", "basicAuthUserInfo"),
)
NO_SECRETS = (
    *("topic", "retention.size", "bootstrap.servers", "key.serializer", "value.serializer", "message.key", "key"),
    *("ssl.ca.pem", "ssl.certificate.pem", "https.ca.pem", "ssl.ca.location", "ssl.key.location", "ssl.keystore.type"),
    *("ssl.keystore.location", "ssl.keystore.certificate.chain", "ssl.truststore.certificates", "caPem", "cert_pem"),
    *("sasl.username", "sasl.mechanism", "sasl.kerberos.keytab", "sasl.kerberos.principal", "temperature"),
    *("sasl.oauthbearer.assertion.private.key.file", "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.scope"),
    *("aws.accesskey", "fs.s3a.access.key", "fs.s3a.aws.credentials.provider", "partition.key", "templates"),
)


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_known_by_its_name(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", NO_SECRETS)
def test_other_names_are_no_secrets(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *(("a 'b'", "a 'b'"), ("", ""), (None, "null"), (True, "true"), (False, "false"), (7, "7"), (1.5, "1.5")),
        *((2**70, str(2**70)), (float("nan"), "NaN"), (float("-inf"), "-Infinity"), ([], "[]"), ({}, "{}")),
        ({"x": [1, None, "é", True]}, '{"x": [1, null, "é", true]}'),
        (("x", MappingProxyType({"y": None})), '["x", {"y": null}]'),
    ],
)
def test_a_value_is_written_as_in_json_but_a_text_without_quotes(value: object, text: str) -> None:
    assert json_text(value) == text


@pytest.mark.parametrize(("secret", "shown"), [("short", "****"), ("0123456789abcdef", "****cdef"), ("", "****")])
def test_a_mask_spares_the_end_of_long_secrets_only(secret: str, shown: str) -> None:
    assert mask(secret) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://u:p@h:5432/d?sslmode=require", "postgresql://****@h:5432/d?sslmode=require"),
        ("postgresql://h/d?user=u&password=p", "postgresql://h/d?user=u&password=****"),
        ("sc://h:15002/;user_id=u;token=t", "sc://h:15002/;user_id=u;token=****"),
        ("http://u:p@ss@h/x", "http://****@h/x"),
        ("http://u:p/a?s#s@h/x", "http://****@h/x"),
        ("http://u:p ss@h", "http://****@h"),
        ("http://u:12ab@h", "http://****@h"),
        ("http://:p@[::1]:80/", "http://****@[::1]:80/"),
        ("https://token@h/x", "https://****@h/x"),
        ("https://user:https@h", "https://****@h"),
        (
            "no connection to 'https://u:p@h1', nor to https://u:p@h2",
            "no connection to 'https://****@h1', nor to https://****@h2",
        ),
        ('{"url": "https://u:p@h", "other": "x@y"}', '{"url": "https://****@h", "other": "x@y"}'),
    ],
)
def test_users_passwords_and_secret_parameters_of_urls_are_masked(text: str, shown: str) -> None:
    assert mask_urls(text) == shown
    assert mask_urls(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "https://h:8080/domains/a@demo/roles",
        "https://h/x?mail=a@b",
        "http://[::1]:80/a@b",
        "s3://bucket/a:b@c",
        "file:///a@b",
        "https://h:9077 refused the request of a@b",
        "https://h: no such host, write to a@b",
        "https://h:9077: the answer of a@b",
        '{"url":"https://h","user":"a@b"}',
        "hdfs://a:9000,b:9000/a@b",
        "a@b has no role",
        "write postgresql://user@host:5432/name",
        "a proxy is HOST:PORT or SCHEME://USER:PASSWORD@HOST:PORT",
        "svcctl query 'from t where a = ?password=x'",
    ],
)
def test_other_texts_are_not_masked(text: str) -> None:
    assert mask_urls(text) == text


@given(st.text("ab:/@?# \n12", max_size=30), st.sampled_from(["pw", "p:w", "p@w", "p%2Fw"]))
def test_a_password_is_masked_whatever_surrounds_its_url(around: str, password: str) -> None:
    assert password not in mask_urls(f"{around} https://user:{password}@host/{around}")
