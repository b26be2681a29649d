"""The error codes of domain and role operations, each with the HTTP status of its response and its `reason`.

The specification of the HTTP interface has only the codes 106 and 117, and no HTTP statuses. This service has chosen
the other codes and all statuses. A response has the form `{"error": {"code": 106, "message": "…"}}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from svcctl.errors import Conflict, CredentialsError, NotFound, ServiceError


class Reason(IntEnum):
    """The reason why an operation is refused.

    The codes 131 to 139 stand for the rules 1 to 9 about roles (see the module `rules`).
    """

    status: int
    identifier: str

    def __new__(cls, code: int, status: int, identifier: str) -> Reason:
        member = int.__new__(cls, code)
        member._value_ = code
        member.status = status
        member.identifier = identifier
        return member

    NO_DOMAIN = 106, 404, "no-domain"
    ALREADY = 117, 409, "already-so"
    """The domain already has the state that the request demands: enabled or disabled."""
    PENDING = 118, 409, "domain-pending"
    """A pending domain cannot be enabled, disabled or accessed."""
    NO_OWNER = 119, 409, "no-owner"
    NOT_RESELLER = 120, 403, "not-reseller"
    NAME = 121, 400, "bad-domain-name"
    """The name is not valid for a domain."""
    TAKEN = 122, 409, "domain-exists"
    """Another domain has this name."""
    NO_PLAN = 123, 400, "no-plan"
    TIME = 124, 400, "time-not-allowed"
    """The price plan does not allow the requested `time` of the domain."""
    BODY = 125, 400, "bad-body"
    NOT_ADMINISTRATOR = 126, 403, "not-administrator"
    DISABLED = 127, 409, "domain-disabled"
    VOLUME = 128, 400, "volume-not-allowed"
    """The price plan does not allow the requested `volume` of the domain."""
    NAME_ONLY = 131, 400, "no-role-name"
    """The name of the role is missing or blank. The name is the only required field."""
    ALL = 132, 400, "all-with-others"
    """A list has other names in addition to `*`. The name `*` already includes all names."""
    SINGLE = 133, 400, "not-names"
    """The value is neither a list of names nor a single name."""
    GRANTS_NOTHING = 134, 400, "grants-nothing"
    """The role would grant neither a policy nor an application."""
    DEFAULT_APPLICATION = 135, 400, "default-application-not-granted"
    """The default application is not among the role's applications."""
    REMOVE_DEFAULT = 136, 400, "bad-default-application"
    """The request has a default application that is not a text. To remove it from the role, send an empty text."""
    POLICY = 137, 400, "unknown-policy"
    """A policy of the role does not exist or is not available in the domain."""
    RESOURCES = 138, 400, "bad-resources"
    """The resource IDs are not an object that maps labels to lists of integers."""
    READ_ONLY = 139, 400, "read-only-field"
    NO_ROLE = 140, 404, "no-role"
    ROLE_TAKEN = 141, 409, "role-exists"
    """The domain already has another role of this name."""
    APPLICATION = 142, 400, "unknown-application"
    """An application of the role does not exist or is not active in the domain."""


_KINDS: dict[int, type[ServiceError]] = {400: ServiceError, 403: CredentialsError, 404: NotFound, 409: Conflict}


def refusal(
    reason: Reason, message: str, *, hint: str | None = None, data: Mapping[str, Any] | None = None
) -> ServiceError:
    """Make the error for a reason. `message` must contain the refused value from the request."""
    return _KINDS[reason.status](message, code=int(reason), hint=hint, reason=reason.identifier, data=data)


def reason_of(error: Exception) -> Reason | None:
    """Return the reason of an error that `refusal` has made. Return None for any other error."""
    code = error.code if isinstance(error, ServiceError) else None
    return next((reason for reason in Reason if reason == code), None)
