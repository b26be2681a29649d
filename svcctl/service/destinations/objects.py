"""The destinations s3 and hdfs: which storage their parameters describe, and how their files are named.

Both complete a file when it reaches a size in MB (`retention.size`) or an age in seconds (`retention.time`).
"""

from __future__ import annotations

import posixpath

from svcctl.errors import UsageError
from svcctl.service.destinations.packing import PACKINGS
from svcctl.service.destinations.params import Params
from svcctl.service.destinations.parts import Names, Parts
from svcctl.storage import names_host

MEGABYTE = 1_000_000
UNLIMITED_SIZE, UNLIMITED_AGE = 1 << 62, float("inf")


def s3(job_id: str, params: Params) -> Parts:
    """Objects `<s3.fileName>_<nnn>.csv`, and `.gz` or `.zip`; with `multiplefile` false a single `<s3.fileName>.csv`,
    unless that exists.

    `s3.fileName` is the job's ID by default. `aws.endpoint` is the URL of another S3 service. Requests are signed
    with `aws.accesskey`, or not at all: a job never uses credentials of the machine that the service runs on.
    """
    from svcctl.storage.s3 import DEFAULT_REGION, S3, Keys

    key = params.text("aws.accesskey")
    endpoint = params.text("aws.endpoint")
    if endpoint and not names_host(endpoint, "http", "https"):
        raise params.refused("aws.endpoint", "must be an http or https URL")
    storage = S3(
        params.text("aws.bucket"),
        keys=Keys(key, params.required("aws.secretkey")) if key else None,
        region=params.text("aws.region", DEFAULT_REGION),
        endpoint=endpoint or None,
    )
    base = params.text("s3.fileName", job_id)
    several = params.flag("multiplefile", True)
    if params.endless and not several:
        raise params.refused("multiplefile", "must be true for a query without an end")
    packing = params.choice("format", tuple(PACKINGS))
    password = params.text("file.password")
    if password and packing != "zip":
        raise params.refused("file.password", "needs format zip")
    size = params.number("retention.size", 50, 500, 100) * MEGABYTE
    age = float(params.number("retention.time", 300, 86_400, 300))

    return Parts(
        job_id,
        storage,
        Names(base, ".csv", plain=not several),
        size=size if several else UNLIMITED_SIZE,
        age=age if several else UNLIMITED_AGE,
        packing=packing,
        password=password,
    )


def hdfs(job_id: str, params: Params) -> Parts:
    """Files numbered before the extension: `/logs/web.csv` becomes `/logs/web_000.csv`, `/logs/web_001.csv`, …."""
    from svcctl.storage.hdfs import Hdfs

    url = params.text("fs.defaultFS")
    file = params.text("file")
    if not file.startswith("/") or file.endswith("/"):
        raise params.refused("file", "must be the absolute path of a file")
    replication = params.number("dfs.replication", 1, 512, 0) if params.text("dfs.replication") else None
    try:
        storage = Hdfs(url, replication=replication)
    except UsageError:
        raise params.refused("fs.defaultFS", "must be of the form hdfs://host:port") from None
    stem, extension = posixpath.splitext(file.lstrip("/"))
    return Parts(
        job_id,
        storage,
        Names(stem, extension),
        size=params.number("retention.size", 1, 10_000, 128) * MEGABYTE,
        age=float(params.number("retention.time", 1, 86_400, 300)),
    )
