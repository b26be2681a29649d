"""S3 and what speaks like it: csv objects `<name>_<nnn>.csv`, `.gz` or `.zip`, uploaded in parts while they are made.

An object appears when its upload is completed; an upload that was begun and left is invisible, and the bucket's own
rules clean it up. Beside the keys seen in the field, `aws.endpoint` is the URL of another S3 service; the bucket
then stands in the path. Without `aws.accesskey` requests are not signed: a job never uses credentials of the service's
own machine.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from svcctl.service.destinations import Memo
from svcctl.service.destinations.params import Params
from svcctl.service.destinations.parts import MEGABYTE, Parts, Sink

if TYPE_CHECKING:
    from obstore.store import RetryConfig

UPLOAD_BYTES = 8 << 20
"""The size of an upload's part; S3 takes 10000 of them."""
WITHOUT_END = 1 << 62
RETRY: RetryConfig = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
"""Of one request; a job goes on trying by itself, and says why meanwhile."""


class S3(Parts):
    failures = (BaseError, OSError)

    def __init__(self, job_id: str, params: Params) -> None:
        self._bucket = params.required("aws.bucket")
        self._region = params.text("aws.region", "us-east-1")
        self._key = params.text("aws.accesskey")
        self._secret = params.required("aws.secretkey") if self._key else params.text("aws.secretkey")
        self._endpoint = params.text("aws.endpoint")
        if self._endpoint and urlsplit(self._endpoint).scheme not in ("http", "https"):
            raise params.refused("aws.endpoint", "is not a URL of http or https")
        self._base = params.text("s3.fileName", job_id)
        self._several = params.flag("multiplefile", True)
        if params.endless and not self._several:
            raise params.refused("multiplefile", "must be true for a query without an end")
        format = params.choice("format", ("plain", "gzip", "zip"))
        password = params.text("file.password")
        if password and format != "zip":
            raise params.refused("file.password", "goes with format zip")
        size = params.number("retention.size", 50, 500, 100) * MEGABYTE
        age = float(params.number("retention.time", 300, 86_400, 300))
        super().__init__(
            size=size if self._several else WITHOUT_END,
            age=age if self._several else float("inf"),
            format=format,
            password=password,
        )

    def name(self, number: int) -> str:
        return f"{self._base}_{number:03}.csv" if self._several or number else f"{self._base}.csv"

    def open(self, sent: int, memo: Memo, head: bytes) -> int:
        self._store = S3Store(
            self._bucket,
            region=self._region,
            skip_signature=not self._key,
            access_key_id=self._key or None,
            secret_access_key=self._secret or None,
            endpoint=self._endpoint or None,
            virtual_hosted_style_request=False,
            client_options={"allow_http": True, "connect_timeout": "5s", "timeout": "60s"},
            retry_config=RETRY,
        )
        return super().open(sent, memo, head)

    def create(self, name: str) -> Sink:
        self._object = obstore.open_writer(self._store, name, buffer_size=UPLOAD_BYTES, max_concurrency=2)
        return self._object

    def complete(self, name: str) -> None:
        self._object.close()
