"""`svcctl api`: send any signed request, for example for operations that have no command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from svcctl.cli.commands import page_of
from svcctl.cli.completion.words import Completes
from svcctl.cli.context import Context
from svcctl.cli.inputs.text import read_bytes
from svcctl.cli.options import ForceOpt, OutputOpt, length_option
from svcctl.dates.lengths import length_text
from svcctl.errors import Advice, CommandLine, IncompleteResult, SvcctlError, Unavailable, UnprovenEnd, UsageError
from svcctl.io.home import expanded_path
from svcctl.io.time_limit import time_limit
from svcctl.terminal.escapes import visible
from svcctl.terminal.formats import FORMATS

METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS")

_USAGE = Advice("usage: svcctl api [METHOD] PATH, such as ", CommandLine("svcctl api /search/jobs"))

PATHS = ("/search/query", "/search/jobs", "/search/job/", "/domain", "/domain/")
"""The paths that the shell completes. A path that ends in a slash is the beginning of longer paths."""

MethodArg = Annotated[
    str | None,
    typer.Argument(metavar="[METHOD]", help=f"{', '.join(METHODS[:-1])} or {METHODS[-1]}; GET if it is left out."),
    Completes(words=METHODS),
]
PathArg = Annotated[
    str | None,
    typer.Argument(metavar="PATH", help="Path below the base URL, with any query string."),
    Completes(words=PATHS),
]
DataOpt = Annotated[
    str | None,
    typer.Option("--data", "-d", metavar="BODY", help="Body to send; @FILE reads a file, @- standard input."),
]
HeaderOpt = Annotated[
    list[str] | None, typer.Option("--header", "-H", metavar="NAME:VALUE", help="Header to send (repeatable).")
]
MaxTimeOpt = Annotated[float | None, length_option("--max-time", "Fail after 30s, 5m, …, retries included.")]
IncludeOpt = Annotated[bool, typer.Option("--include", "-i", help="Print status and headers before the body.")]


def register(app: typer.Typer) -> None:
    app.command("api", help=page_of("api", api))(api)


def api(
    ctx: typer.Context,
    method: MethodArg = None,
    path: PathArg = None,
    data: DataOpt = None,
    header: HeaderOpt = None,
    include: IncludeOpt = False,
    output: OutputOpt = None,
    force: ForceOpt = False,
    max_time: MaxTimeOpt = None,
) -> None:
    """The body is printed as it arrives. If the service refuses the request, the body goes to standard output, even
    with --output. The exit code says whether the service refused the request, even if the HTTP status is 200. Paths
    that begin with /domain go to the provisioning URL.

    \b
    svcctl api /search/jobs
    svcctl api POST /search/query \\
      -d '{"query":"from auth.all","from":"1h","to":"now"}'
    svcctl api POST /search/query -d @request.json -o answer.json
    svcctl -p local-reseller api /domain --include
    """
    from svcctl.api.refusals import MAX_BODY

    svc: Context = ctx.obj
    method, path = _operation(method, path, data)
    body, headers = _body(data), dict(_header(text) for text in header or [])
    start = bytearray()
    """The first bytes of the answer, which show whether the service refused the request."""

    def watched(chunks: Iterator[bytes]) -> Iterator[bytes]:
        try:
            for chunk in chunks:
                start.extend(chunk[: MAX_BODY + 1 - len(start)])
                yield chunk
        except UnprovenEnd:
            if answer.error(bytes(start)) is None:  # a refusal is reported even if it may be cut off
                raise

    def late(seconds: float) -> SvcctlError:
        if start:
            return IncompleteResult(f"no complete answer within {length_text(seconds)}")
        return svc.late(seconds, Unavailable(f"no complete answer within {length_text(seconds)}"))

    with (
        svc.output.target(output, FORMATS["ndjson"], force=force) as target,
        time_limit(max_time, late),
        svc.client.request(method, path, body, headers) as answer,
    ):
        sink = svc.output.sink if answer.refused else target
        if include:
            sink.line(f"HTTP {answer.status}")
            for name, value in answer.headers.items():
                sink.line(f"{name}: {visible(value)}")
            sink.line("")
        svc.output.stream(watched(answer.body), sink)
        if error := answer.error(bytes(start)):
            if sink is not svc.output.sink:
                svc.output.stream(iter((bytes(start),)), svc.output.sink)
            raise error  # raised inside the block, so that no file appears


def _operation(method: str | None, path: str | None, data: str | None) -> tuple[str, str]:
    """Return the method and the path.

    If only a path is given, Typer passes the path as `method`. In this case, the returned method is GET.
    """
    if path is None and (method is None or method.upper() not in METHODS):
        method, path = None, method
    if method is not None and method.upper() not in METHODS:
        raise UsageError(f"unknown method '{method}'", hint=f"methods are: {', '.join(METHODS)}")
    if path is None:
        raise UsageError("missing PATH", hint=_USAGE)
    if not path.startswith("/"):
        raise UsageError(f"path '{path}' does not start with a slash", hint="the base URL comes from the profile")
    if method is None and data is not None:
        raise UsageError("a request with a body needs its method", hint=f"write svcctl api POST {path} --data …")
    return method or "GET", path


def _body(data: str | None) -> bytes:
    if data is None or not data.startswith("@"):
        return (data or "").encode("utf-8", "surrogateescape")
    return read_bytes(expanded_path(data[1:]), "the body")


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise UsageError("--header must be of the form NAME:VALUE")  # the text may hold a secret, so it is not repeated
    return name.strip(), value.strip()
