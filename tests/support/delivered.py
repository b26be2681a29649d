"""Jobs that have delivered everything to S3."""

import json

from peers.s3 import S3Peer

from support.shells import Shell


def deliver(shell: Shell, bucket: S3Peer, name: str, query: str, *dates: str) -> None:
    """Launch a job of a name, and wait until the bucket has all rows of the query."""
    params = {
        "friendlyName": name,
        "aws.bucket": bucket.bucket,
        "aws.accessKey": bucket.key,
        "aws.secretKey": bucket.secret,
        "aws.region": bucket.region,
        "aws.endpoint": bucket.endpoint,
    }
    text = json.dumps({"type": "s3", "params": params})
    launched = shell("query", query, *dates, "--dest-json", "-", stdin=text)
    assert launched.returncode == 0, launched.stderr
    assert shell("job", "wait", name, "--max-time", "30").returncode == 0
