"""Every error svcctl raises on purpose.

    SvcctlError
    ├── UsageError              what the caller typed or configured cannot be used
    │   ├── RangeEndsFirst      a range whose end is before its start
    │   ├── ProfileError        the credential store or a profile in it
    │   └── MissingExtra        a part of svcctl that is not installed
    ├── ServiceError            the service answered, and the answer is no
    │   ├── CredentialsError    key, signature or token refused
    │   ├── InternalError       the service failed while it answered
    │   ├── NotFound            no such job, domain, role or saved query
    │   └── Conflict            the thing exists, in a state that does not allow this
    ├── Unavailable             no usable answer: network, timeout, 408, 429, 5xx, a proxy's page
    │   └── MalformedAnswer     an answer without what was asked for
    ├── IncompleteResult        an answer that began and was not whole
    │   ├── UnprovenEnd         an answer that may have been cut where its connection ended
    │   └── TooManyRows         an answer with more rows than the client accepts
    ├── EmptyResult             there are no rows, and they are needed
    │   └── NoRows              the same, where the caller asked for that to be a failure
    ├── Differs                 what is there is not as it should be, where the caller asked whether it is
    └── Locked                  another run holds the lock

Three exceptions are not errors and are defined beside the tree: Declined, ReaderClosed and its subclass PagerLeft.

EXIT_CODES at the end has the exit code of each class. Nothing here ends a process or prints, so that the client can be
used as a library.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self


class CommandLine(str):
    """A command line in a message. A terminal shows it on one line, so that people can copy it."""


class Advice(str):
    """A text that is made of parts, and the command lines among them."""

    commands: tuple[str, ...]

    def __new__(cls, *parts: str) -> Self:
        advice = super().__new__(cls, "".join(parts))
        advice.commands = tuple(command for part in parts for command in commands_in(part))
        return advice


def commands_in(text: str) -> tuple[str, ...]:
    """The command lines that a text is known to contain."""
    return (text,) if isinstance(text, CommandLine) else text.commands if isinstance(text, Advice) else ()


def advice_of(*texts: str | None) -> Advice | None:
    """Several hints as one, each once; None when there are none."""
    parts: list[str] = []
    for text in dict.fromkeys(filter(None, texts)):
        separator = [" " if parts[-1].endswith("?") else "; "] if parts else []
        parts += [*separator, text]
    return Advice(*parts) if parts else None


class Subject(NamedTuple):
    """A thing of a file that an error is about: its kind, its name, and file and line if a file has it.

    `repeats`: what failed can be done again as it was, whether or not it was done in part.
    """

    kind: str
    name: str
    place: str | None
    repeats: bool = False


class SvcctlError(Exception):
    """What happened, in one line with the caller's own value, and (when there is one) what to do about it.

    Neither is changed later. Who catches the error and knows more sets a field of it, adds a note (`add_note`), or
    raises another one of the same kind (`saying`).

    `reason` identifies the cause for programs, in lower case with hyphens, and `data` has its values, which JSON can
    hold. A class has a general reason. The service and the client never name an svcctl command in a hint: the command
    line has the hints for reasons, and makes them from the data.
    """

    reason = "failed"
    data: Mapping[str, Any] = MappingProxyType({})
    subject: Subject | None = None

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        reason: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if reason is not None:
            self.reason = reason
        if data is not None:
            self.data = data

    def __reduce__(self) -> Any:
        """Errors pass between processes, whatever their constructors take."""
        return type(self).__new__, (type(self), *self.args), {**vars(self), "data": dict(self.data)}

    def advised_by(self, cause: SvcctlError) -> Self:
        """This error, with the hint, the reason and the data of its cause."""
        self.hint, self.reason, self.data = cause.hint, cause.reason, cause.data
        return self

    def saying(self, message: str) -> Self:
        """An error of the same kind, with the same fields and notes, and another message."""
        error = type(self).__new__(type(self), message)
        vars(error).update(vars(self), message=message)
        return error


class UsageError(SvcctlError):
    """An option, argument, file or setting that cannot be used as given."""

    reason = "unusable"


class RangeEndsFirst(UsageError):
    """A range whose end is before its start."""


class ProfileError(UsageError):
    """A profile that is missing, unreadable, open to others or incomplete."""


class MissingExtra(UsageError):
    """A feature whose packages are not installed; the message names the extra."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs packages that are not installed",
            hint=Advice(
                "install them with: ",
                CommandLine(f"pip install 'svcctl[{extra}]'"),
                " (in a clone: ",
                CommandLine(f"pip install '.[{extra}]'"),
                ")",
            ),
        )


class Place(NamedTuple):
    """A position in a query's text: line and column, counted from 1, in characters."""

    line: int
    column: int


class ServiceError(SvcctlError):
    """A refusal by the service: its message, its code (`code`, `status` or the HTTP status) and the request's cid.

    `place` is set when the service says where in the query the mistake is; `query` is the text it refers to.
    """

    reason = "refused"

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        cid: str | None = None,
        hint: str | None = None,
        place: Place | None = None,
        query: str | None = None,
        reason: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, hint=hint, reason=reason, data=data)
        self.code = code
        self.cid = cid
        self.place = place
        self.query = query


class CredentialsError(ServiceError):
    """HTTP 401 or 403, or an envelope that says the key, the signature or the token is not accepted."""

    reason = "credentials-refused"


class InternalError(ServiceError):
    """HTTP 500, or an envelope with that code: the service failed at this request, and others may be answered."""

    reason = "internal-error"


class NotFound(ServiceError):
    """Domain error 106, job status 100, HTTP 404."""

    reason = "not-found"


class Conflict(ServiceError):
    """Domain error 117, job statuses 101 and 108, HTTP 409."""

    reason = "conflict"


class Unavailable(SvcctlError):
    """No usable answer after the allowed retries.

    `status` is the HTTP status of the answer, if that is the reason; `retry_after` is how many seconds the service asks
    its clients to wait, if it says so.
    """

    reason = "unavailable"

    status: int | None = None
    retry_after: float | None = None
    unanswered = False
    """Whether no answer came at all, so that the connection is to blame."""
    untrusted = False
    """Whether the service's certificate is of an unknown CA."""


class MalformedAnswer(Unavailable):
    """A successful answer that lacks what the interface says it holds: a list, a record, a member of a record."""


class IncompleteResult(SvcctlError):
    """A stream that was cut, ended in an error of its own, or could not be written to its end.

    `rows` is the number of whole rows that were delivered before, when it is known.
    """

    reason = "incomplete"

    def __init__(
        self,
        message: str,
        *,
        rows: int | None = None,
        hint: str | None = None,
        reason: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, hint=hint, reason=reason, data=data)
        self.rows = rows


class UnprovenEnd(IncompleteResult):
    """An answer that ends with its connection, and the connection did not end properly."""

    closed = False
    """Whether the connection did not break: it was closed, and only the close_notify of TLS is missing."""


class TooManyRows(IncompleteResult):
    """An answer with more rows than the client accepts; `rows` of them were delivered before."""


class EmptyResult(SvcctlError):
    """The query was answered with no rows."""


class NoRows(EmptyResult):
    """No rows, where the caller asked whether there are any: the exit code is the whole answer for --quiet."""


class Differs(SvcctlError):
    """What is there differs from what the caller compared it with."""


class Locked(SvcctlError):
    """Another process holds a lock this one needs."""

    reason = "locked"


def reason(error: Exception) -> str:
    """Why the system or a codec failed, in its own words and without the number."""
    code = getattr(error, "errno", None)
    if code == errno.EBADF:
        return "it is closed"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8"
    system_text = os.strerror(code) if isinstance(code, int) and code > 0 else None
    return getattr(error, "strerror", None) or system_text or str(error)


def as_svcctl_error(error: BaseException) -> BaseException:
    """Turn an operating system error that nothing expected into an svcctl error: it is not a defect of svcctl."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return IncompleteResult(os.strerror(error.errno))
    if isinstance(error, OSError) and isinstance(error.filename, str | bytes):
        return UsageError(f"{os.fsdecode(error.filename)} cannot be used: {reason(error)}")
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        return UsageError(f"'{error.object}' holds bytes that are not UTF-8")
    return error


class Terminated(BaseException):
    """SIGTERM came: whoever runs the process wants it to end, as a person does with Ctrl-C."""


class Interrupted(Terminated):
    """Ctrl-C with a note for the user. Not a KeyboardInterrupt, whose note Typer would drop."""


class Declined(Exception):
    """The person who was asked said no, or nothing."""


class ReaderClosed(Exception):
    """The reader of stdout has closed it, as `head` does: there is nobody left to write for."""


class PagerLeft(ReaderClosed):
    """The person who read in a pager has seen enough."""


class ExitCode(NamedTuple):
    """An exit code, which scripts may rely on, and the errors that have it."""

    code: int
    meaning: str
    errors: tuple[type[BaseException], ...] = ()


EXIT_CODES = (
    ExitCode(0, "done (also with zero rows)", (PagerLeft,)),
    ExitCode(1, "the service refused, or a job that 'job wait' waits for fails", (ServiceError, SvcctlError)),
    ExitCode(2, "usage: an option, argument, file or profile cannot be used", (UsageError,)),
    ExitCode(3, "credentials refused", (CredentialsError,)),
    ExitCode(4, "not found (a job, domain, role, saved query, or a table of 'tables')", (NotFound,)),
    ExitCode(5, "conflicting state (already stopped, already enabled, …)", (Conflict,)),
    ExitCode(6, "no usable answer after retries (network, timeout, 408, 429, 5xx, an empty answer)", (Unavailable,)),
    ExitCode(
        7,
        "incomplete result (cut, ended in an error, not written, over max_rows, windows missing)",
        (IncompleteResult,),
    ),
    ExitCode(8, "empty result, with --fail-on-empty", (EmptyResult,)),
    ExitCode(9, "another run holds the lock", (Locked,)),
    ExitCode(10, "something differs: with --check, or for export reconcile", (Differs,)),
    ExitCode(
        130,
        "interrupted, or a question was not answered with yes",
        (KeyboardInterrupt, Interrupted, Declined),
    ),
    ExitCode(141, "the reader closed the pipe (nothing is printed)", (ReaderClosed,)),
    ExitCode(143, "ended by SIGTERM, as systemd and Kubernetes stop a process", (Terminated,)),
)
_CODES = {kind: row.code for row in EXIT_CODES for kind in row.errors}


def exit_code(error: BaseException) -> int:
    """The exit code of the error's class or its nearest base class in the table; 1 if the table has neither."""
    return next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), 1)
