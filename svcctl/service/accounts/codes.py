"""The error codes of domain and role operations, each with the HTTP status of its answer.

106 and 117 are the interface's own. It shows no other codes and no HTTP statuses, so the rest of this table is a choice
of this service. An answer has the interface's shape, `{"error": {"code": 106, "message": "…"}}`.
"""

from __future__ import annotations

from enum import IntEnum

from svcctl.errors import Conflict, CredentialsError, NotFound, ServiceError


class Reason(IntEnum):
    """Why an operation is refused; 131 to 139 are for the interface's rules 1 to 9 about roles."""

    status: int

    def __new__(cls, code: int, status: int) -> Reason:
        member = int.__new__(cls, code)
        member._value_ = code
        member.status = status
        return member

    NO_DOMAIN = 106, 404
    ALREADY = 117, 409
    """The domain is already enabled, or already disabled."""
    PENDING = 118, 409
    """A pending domain can be neither enabled, nor disabled, nor accessed."""
    NO_OWNER = 119, 409
    NOT_RESELLER = 120, 403
    NAME = 121, 400
    """A domain cannot have this name."""
    TAKEN = 122, 409
    """Another domain has this name."""
    NO_PLAN = 123, 400
    TIME = 124, 400
    """The plan does not allow this time."""
    BODY = 125, 400
    NOT_ADMINISTRATOR = 126, 403
    DISABLED = 127, 409
    VOLUME = 128, 400
    """The plan does not allow this volume."""
    NAME_ONLY = 131, 400
    """The name is missing, the only required field."""
    ALL = 132, 400
    """`*` stands for all, so nothing else can be beside it."""
    SINGLE = 133, 400
    """The value is neither a list of names nor a single name."""
    GRANTS_NOTHING = 134, 400
    """The role would grant neither a policy nor an application."""
    DEFAULT_APPLICATION = 135, 400
    """The default application is not among the role's applications."""
    REMOVE_DEFAULT = 136, 400
    """The default application is neither a name nor empty."""
    POLICY = 137, 400
    """A policy does not exist, or is not available in the domain."""
    RESOURCES = 138, 400
    """The resource IDs are not lists of integers by label."""
    READ_ONLY = 139, 400
    NO_ROLE = 140, 404
    ROLE_TAKEN = 141, 409
    """The domain has another role of this name."""
    APPLICATION = 142, 400
    """An application does not exist, or is not active in the domain."""


_KINDS: dict[int, type[ServiceError]] = {400: ServiceError, 403: CredentialsError, 404: NotFound, 409: Conflict}


def refused(reason: Reason, message: str, *, hint: str | None = None) -> ServiceError:
    """The error for a reason; the message contains the caller's own value."""
    return _KINDS[reason.status](message, code=int(reason), hint=hint)


def reason_of(error: Exception) -> Reason | None:
    """The reason that `refused` made an error for; None for any other error."""
    code = error.code if isinstance(error, ServiceError) else None
    return next((reason for reason in Reason if reason == code), None)
