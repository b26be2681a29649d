"""The error codes of the provisioning routes: every way in which a domain or role operation is refused.

106 and 117 are the interface's own; it shows no others and no HTTP statuses, so the rest of this table is a choice of
this service. Answers have the interface's shape, `{"error": {"code": 106, "message": "…"}}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from svcctl.errors import Conflict, CredentialsError, NotFound, ServiceError


class Code(IntEnum):
    NO_DOMAIN = 106
    ALREADY = 117
    PENDING = 118
    NO_OWNER = 119
    NOT_RESELLER = 120
    NAME = 121
    TAKEN = 122
    NO_PLAN = 123
    AMOUNT = 124
    BODY = 125
    NOT_ADMINISTRATOR = 126
    DISABLED = 127
    NAME_ONLY = 131
    ALL = 132
    SINGLE = 133
    GRANTS_NOTHING = 134
    DEFAULT_APPLICATION = 135
    REMOVE_DEFAULT = 136
    POLICY = 137
    RESOURCES = 138
    READ_ONLY = 139
    NO_ROLE = 140
    ROLE_TAKEN = 141
    APPLICATION = 142


@dataclass(frozen=True, slots=True)
class Refusal:
    """How a code is answered: HTTP status, the class of its error, and what it says in general."""

    status: int
    kind: type[ServiceError]
    meaning: str


REFUSALS = {
    Code.NO_DOMAIN: Refusal(404, NotFound, "the domain does not exist"),
    Code.ALREADY: Refusal(409, Conflict, "the domain is enabled, or disabled, already"),
    Code.PENDING: Refusal(409, Conflict, "the domain is pending, so it can be neither enabled, disabled nor accessed"),
    Code.NO_OWNER: Refusal(409, Conflict, "the domain has no owner, so it cannot be accessed"),
    Code.NOT_RESELLER: Refusal(403, CredentialsError, "the operation needs reseller credentials"),
    Code.NAME: Refusal(400, ServiceError, "the name is not one that a domain can have"),
    Code.TAKEN: Refusal(409, Conflict, "a domain has this name"),
    Code.NO_PLAN: Refusal(400, ServiceError, "the reseller has no such plan"),
    Code.AMOUNT: Refusal(400, ServiceError, "time or volume is not one that the plan allows"),
    Code.BODY: Refusal(400, ServiceError, "the body, or a field of it, cannot be read"),
    Code.NOT_ADMINISTRATOR: Refusal(403, CredentialsError, "the account does not administrate the domain"),
    Code.DISABLED: Refusal(409, Conflict, "the domain is disabled, so it cannot be accessed"),
    Code.NAME_ONLY: Refusal(400, ServiceError, "role rule 1: the name is missing"),
    Code.ALL: Refusal(400, ServiceError, "role rule 2: * means all, so nothing stands beside it"),
    Code.SINGLE: Refusal(400, ServiceError, "role rule 3: neither a list of names nor a single one"),
    Code.GRANTS_NOTHING: Refusal(400, ServiceError, "role rule 4: neither policies nor applications"),
    Code.DEFAULT_APPLICATION: Refusal(400, ServiceError, "role rule 5: the default is not among the applications"),
    Code.REMOVE_DEFAULT: Refusal(400, ServiceError, "role rule 6: the default application is neither a name nor empty"),
    Code.POLICY: Refusal(400, ServiceError, "role rule 7: a policy does not exist or is not available"),
    Code.RESOURCES: Refusal(400, ServiceError, "role rule 8: the resource IDs are not lists of integers by label"),
    Code.READ_ONLY: Refusal(400, ServiceError, "role rule 9: the field cannot be set"),
    Code.NO_ROLE: Refusal(404, NotFound, "the role does not exist"),
    Code.ROLE_TAKEN: Refusal(409, Conflict, "a role of the domain has this name"),
    Code.APPLICATION: Refusal(400, ServiceError, "an application does not exist or is not active in the domain"),
}


def refused(code: Code, message: str) -> ServiceError:
    """The error of a code, with a message that names the caller's own value."""
    return REFUSALS[code].kind(message, code=int(code))
