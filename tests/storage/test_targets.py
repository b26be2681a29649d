"""Which storage a target names, and how a target that cannot be used is refused."""

from __future__ import annotations

import sys

import pytest

from svcctl.errors import MissingExtra, UsageError
from svcctl.storage.hdfs import Hdfs
from svcctl.storage.local import LocalStorage
from svcctl.storage.s3 import S3
from svcctl.storage.targets import open_target

# What the errors say, each once; the tests state their kind.
WORDS = {
    "no packages": "the target {scheme}:// needs packages that are not installed",
}
HINTS = {
    "no packages": "install them with: pip install 'svcctl[{scheme}]' (in a clone: pip install '.[{scheme}]')",
}

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


@pytest.mark.parametrize(
    ("target", "kind", "name"),
    [
        ("rows.csv", LocalStorage, "rows.csv"),
        ("/data/out/{start:%Y/%m/%d}.csv", LocalStorage, "/data/out/{start:%Y/%m/%d}.csv"),
        ("s3://bucket/rows.csv", S3, "rows.csv"),
        ("s3://bucket/out/{start:%Y/%m/%d}?#.csv.gz", S3, "out/{start:%Y/%m/%d}?#.csv.gz"),
        ("hdfs://host:8020/out/rows.csv", Hdfs, "out/rows.csv"),
    ],
)
def test_a_target_names_a_storage_and_an_object_in_it(target: str, kind: type, name: str) -> None:
    storage, found = open_target(target, KEYS)
    assert (type(storage), found, storage.address(found)) == (kind, name, target)


@pytest.mark.parametrize(
    ("target", "environment", "message", "hint"),
    [
        (
            "ftp://host/rows.csv",
            {},
            "unknown kind of target 'ftp://host/rows.csv'",
            "targets are a local path, s3://bucket/name and hdfs://host/name",
        ),
        ("s3://bucket", KEYS, "'s3://bucket' is not the address of an object", "write s3://bucket/NAME"),
        (
            "s3://bucket/folder/",
            KEYS,
            "'s3://bucket/folder/' is not the address of an object",
            "write s3://bucket/NAME",
        ),
        ("s3:///rows.csv", KEYS, "'s3:///rows.csv' is not the address of an object", "write s3://PLACE/NAME"),
        ("hdfs://host:8020/", {}, "'hdfs://host:8020/' is not the address of an object", "write hdfs://host:8020/NAME"),
        (
            "hdfs://host/rows.csv",
            {},
            "cannot use hdfs://host: No NameNode hosts found",
            "write hdfs://host:port",
        ),
        (
            "s3://bucket/rows.csv",
            {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": ""},
            "no credentials for s3://bucket: AWS_SECRET_ACCESS_KEY is not set",
            "set the AWS_* variables in the environment (AWS_ENDPOINT_URL too, for another S3 service)",
        ),
        (
            "s3://bucket/rows.csv",
            {},
            "no credentials for s3://bucket: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set",
            "set the AWS_* variables in the environment (AWS_ENDPOINT_URL too, for another S3 service)",
        ),
        (
            "s3://bucket/rows.csv",
            KEYS | {"AWS_ENDPOINT_URL": "localhost:9000"},
            "S3 endpoint 'localhost:9000' is not an http or https URL",
            None,
        ),
    ],
)
def test_a_target_that_cannot_be_used_is_refused(
    target: str, environment: dict[str, str], message: str, hint: str | None
) -> None:
    with pytest.raises(UsageError) as caught:
        open_target(target, environment)
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize(("scheme", "package"), [("s3", "obstore"), ("hdfs", "hdfs_native")])
def test_a_target_whose_packages_are_not_installed_names_the_extra(
    scheme: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra) as caught:
        open_target(f"{scheme}://place/rows.csv", KEYS)
    assert caught.value.message == WORDS["no packages"].format(scheme=scheme)
    assert caught.value.hint == HINTS["no packages"].format(scheme=scheme)
