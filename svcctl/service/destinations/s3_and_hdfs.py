"""The destinations s3 and hdfs. Their parameters define the storage and the names of the files.

Both destinations complete a file when it reaches the size `retention.size` in MB, or the age `retention.time` in
seconds.
"""

from __future__ import annotations

import posixpath
from urllib.parse import urlsplit

from svcctl.errors import UsageError
from svcctl.service.destinations.numbered_files import Names, NumberedFiles
from svcctl.service.destinations.params import Params, refused
from svcctl.service.hosts.allowed_hosts import AllowedHosts
from svcctl.service.hosts.proxy import CheckingProxy

MEGABYTE = 1_000_000
UNLIMITED_SIZE, UNLIMITED_AGE = 1 << 62, float("inf")


def s3(job_id: str, params: Params, allowed: AllowedHosts) -> NumberedFiles:
    """Make the destination s3, which writes objects named `<s3.fileName>_<nnn>.csv`.

    Packed objects also have the suffix `.gz` or `.zip`. If `multiplefile` is false, the job writes the single object
    `<s3.fileName>.csv`. If an object with this name already exists, the job writes a numbered object instead. By
    default, `s3.fileName` is the job's ID. `aws.endpoint` is the URL of an S3 service other than Amazon's.

    Requests are signed with `aws.accesskey`. Without this parameter, requests are not signed, because a job must never
    use credentials of the service's machine. The job follows redirects only to allowed hosts.
    """
    from svcctl.storage.s3 import DEFAULT_REGION, S3, Keys, endpoint_of

    key, region = params.text("aws.accesskey"), params.text("aws.region", DEFAULT_REGION)
    endpoint = params.text("aws.endpoint") or endpoint_of(region)
    if not allowed.unlimited:
        url = urlsplit(endpoint)
        allowed.addresses(url.hostname or "", url.port or (443 if url.scheme == "https" else 80))
    proxy = None if allowed.unlimited else CheckingProxy(allowed)
    storage = S3(
        params.text("aws.bucket"),
        keys=Keys(key, params.text("aws.secretkey")) if key else None,
        region=region,
        endpoint=endpoint,
        proxy=proxy,
    )
    several = params.text("multiplefile") == "true"
    return NumberedFiles(
        job_id,
        storage,
        Names(params.text("s3.fileName", job_id), ".csv", plain=not several),
        size=params.number("retention.size") * MEGABYTE if several else UNLIMITED_SIZE,
        age=float(params.number("retention.time")) if several else UNLIMITED_AGE,
        packing=params.text("format"),
        password=params.text("file.password"),
        proxy=proxy,
    )


def hdfs(job_id: str, params: Params, allowed: AllowedHosts) -> NumberedFiles:
    """Make the destination hdfs, which writes numbered files: `/logs/web_000.csv`, `/logs/web_001.csv`, ….

    The NameNode is the server in `fs.defaultFS`. If the allowed hosts are limited, the NameNode must be listed by name
    or address. This is required because a NameNode can send its clients to any other server. The service connects only
    to an address that was checked, and prefers IPv4, as Hadoop does.
    """
    from svcctl.storage.hdfs import Hdfs

    replication = params.number("dfs.replication") if params.text("dfs.replication") else None
    url = urlsplit(params.text("fs.defaultFS"))
    address = None
    if not allowed.unlimited:
        if not url.port:
            raise refused("fs.defaultFS", "must be of the form hdfs://host:port")
        addresses = allowed.addresses(url.hostname or "", url.port, listed=True)
        address = min(addresses, key=lambda text: ":" in text)
    try:
        storage = Hdfs(params.text("fs.defaultFS"), replication=replication, address=address)
    except UsageError:  # a URL may omit the port only if Hadoop's configuration has a cluster of this name
        raise refused("fs.defaultFS", "must be of the form hdfs://host:port") from None
    stem, extension = posixpath.splitext(params.text("file").lstrip("/"))
    return NumberedFiles(
        job_id,
        storage,
        Names(stem, extension),
        size=params.number("retention.size") * MEGABYTE,
        age=float(params.number("retention.time")),
    )
