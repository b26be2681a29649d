"""What only S3 has: credentials, buckets, and requests that other clients can read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from peers.processes import free_port
from peers.s3 import S3Peer

from svcctl.errors import Unavailable, UsageError
from svcctl.storage.s3 import S3, Keys, from_environment

# What the errors say, each once; the tests state their kind.
WORDS = {
    "access denied": "access to s3://{bucket}/rows.csv is denied (SignatureDoesNotMatch)",
    "no bucket": "bucket 'nobody-made-it' does not exist",
    "no connection": "s3://bucket/a.csv: no connection to {endpoint}: {reason}",
    "not an object": "s3://{bucket}/a/../rows.csv is not a valid name of an object",
}
HINTS = {
    "access denied": "check the access key, the secret key and the permissions of the bucket",
    "no connection": "check the endpoint, and that its service is running",
}


@pytest.fixture(params=["s3_peer", "ceph_peer"])
def bucket(request: pytest.FixtureRequest) -> S3Peer:
    peer: S3Peer = request.getfixturevalue(request.param)
    return peer.fresh_bucket()


def opened(peer: S3Peer) -> S3:
    return S3(peer.bucket, keys=Keys(peer.key, peer.secret), region=peer.region, endpoint=peer.endpoint)


def put(storage: S3, data: bytes) -> None:
    with storage.create("rows.csv", overwrite=True) as sink:
        sink.write(data)
        sink.complete()


@pytest.mark.parametrize("size", [10, 20_000_000])
def test_a_wrong_secret_is_refused_and_not_tried_again(bucket: S3Peer, size: int) -> None:
    with pytest.raises(UsageError) as caught:
        put(opened(replace(bucket, secret="wrong")), bytes(size))
    assert caught.value.message == WORDS["access denied"].format(bucket=bucket.bucket)
    assert caught.value.hint == HINTS["access denied"]
    assert bucket.objects() == {}


@pytest.mark.parametrize("size", [10, 20_000_000])
def test_a_bucket_that_does_not_exist_is_named(bucket: S3Peer, size: int) -> None:
    with pytest.raises(UsageError) as caught:
        put(opened(replace(bucket, bucket="nobody-made-it")), bytes(size))
    assert caught.value.message == WORDS["no bucket"]


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("127.0.0.1", "Connection refused"),
        ("nowhere.invalid", "failed to lookup address information: Name or service not known"),
    ],
)
def test_a_server_that_nobody_runs_is_named_with_the_reason(host: str, reason: str) -> None:
    endpoint = f"http://{host}:{free_port()}"
    with pytest.raises(Unavailable) as caught:
        S3("bucket", keys=Keys("key", "secret"), endpoint=endpoint).size("a.csv")
    assert (caught.value.message, caught.value.hint) == (
        WORDS["no connection"].format(endpoint=endpoint, reason=reason),
        HINTS["no connection"],
    )


def test_a_name_that_s3_clients_cannot_write_is_refused(bucket: S3Peer) -> None:
    with pytest.raises(UsageError) as caught:
        opened(bucket).create("a/../rows.csv", overwrite=False)
    assert caught.value.message == WORDS["not an object"].format(bucket=bucket.bucket)


@contextmanager
def listening(*, conditions: bool = True) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server's URL, and the headers of the requests that it got; it accepts them all, unless without `conditions`."""
    requests: list[dict[str, str]] = []

    class Accepts(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            requests.append({name.lower(): value for name, value in self.headers.items()})
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200 if conditions or "if-none-match" not in self.headers else 501)
            self.send_header("etag", '"1"')
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Accepts) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", requests
        server.shutdown()
        thread.join()


def test_a_service_that_knows_no_conditions_gets_objects_without_them() -> None:
    with listening(conditions=False) as (endpoint, requests):
        storage = S3("bucket", keys=None, endpoint=endpoint)
        assert [storage.put_new("a.csv", b"1"), storage.put_new("b.csv", b"2")] == [True, True]
    assert ["if-none-match" in request for request in requests[-3:]] == [True, False, False]


def test_requests_are_signed_with_the_keys_given_and_not_with_those_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"):
        monkeypatch.setenv(name, "process")
    with listening() as (endpoint, requests):
        put(S3("bucket", keys=Keys("GIVEN", "secret"), region="eu-west-1", endpoint=endpoint), b"1")
        put(S3("bucket", keys=None, endpoint=endpoint), b"1")
    given, unsigned = requests
    assert "Credential=GIVEN/" in given["authorization"]
    assert "/eu-west-1/s3/" in given["authorization"]
    assert "x-amz-security-token" not in given
    assert "authorization" not in unsigned


def test_the_environment_gives_keys_token_region_and_endpoint() -> None:
    with listening() as (endpoint, requests):
        environment = {
            "AWS_ACCESS_KEY_ID": "GIVEN",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_SESSION_TOKEN": "temporary",
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            "AWS_ENDPOINT_URL_S3": endpoint,
        }
        put(from_environment("bucket", environment), b"1")
    [request] = requests
    assert "Credential=GIVEN/" in request["authorization"]
    assert "/eu-west-1/s3/" in request["authorization"]
    assert request["x-amz-security-token"] == "temporary"


SECRET = "the body of an answer"


@contextmanager
def answering(status: int) -> Iterator[str]:
    """The URL of a server that answers every request with a status and a secret."""
    body = f'{{"a": "{SECRET}"}}\nkind: Connect message: "{SECRET}" <Code>{SECRET}</Code>'.encode()

    class Answers(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.send_response(status, SECRET)
            self.send_header("retry-after", SECRET)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = answer

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://user:{SECRET.replace(' ', '')}@127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (200, "s3://bucket/: the request got an answer that is not from S3"),
        (204, "s3://bucket/: the request got an answer that is not from S3"),
        (304, "s3://bucket/: GET was answered with 304"),
        (400, "s3://bucket/: GET was answered with 400"),
        (401, "s3://bucket/: GET was answered with 401"),
        (403, "s3://bucket/: GET was answered with 403"),
        (409, "s3://bucket/: GET was answered with 409"),
        (412, "s3://bucket/: GET was answered with 412"),
    ],
)
def test_a_message_has_the_status_of_an_answer_and_nothing_else_of_it(status: int, reason: str) -> None:
    with answering(status) as endpoint, pytest.raises(Unavailable) as caught:
        list(S3("bucket", keys=None, endpoint=endpoint).sizes())
    assert caught.value.message == reason
    assert SECRET not in f"{caught.value.hint}"


def test_an_object_counts_as_stored_only_if_the_answer_is_that_of_s3() -> None:
    with answering(200) as endpoint, pytest.raises(Unavailable) as caught:
        S3("bucket", keys=None, endpoint=endpoint).put("a.csv", b"1")
    assert caught.value.message == "s3://bucket/a.csv: the request got an answer that is not from S3"


def test_a_message_does_not_have_the_user_of_an_endpoint() -> None:
    endpoint = f"http://user:word@127.0.0.1:{free_port()}"
    with pytest.raises(Unavailable) as caught:
        S3("bucket", keys=None, endpoint=endpoint).size("a.csv")
    assert endpoint.replace("user:word", "****") in caught.value.message


def test_a_wrong_endpoint_is_refused_without_its_password() -> None:
    with pytest.raises(UsageError) as caught:
        S3("bucket", keys=None, endpoint="ftp://user:word@minio")
    assert "'ftp://****@minio'" in caught.value.message
