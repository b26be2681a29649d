"""The routes of domains and roles.

For some operations, the interface does not define the answer. In this service, the operations that enable, disable or
delete a domain return the domain. Operations on a role return the role. A list operation returns a list of domains or
of roles.

The following parts are additions to the interface:
- reading, listing and deleting roles
- listing the policies and applications that roles can grant
- checking whether a domain can be created
- the member `users` in the object of a single domain

The module `envelope` makes the answers to errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from svcctl.errors import ServiceError
from svcctl.service.accounts import domains, roles
from svcctl.service.accounts.accounts import Account
from svcctl.service.accounts.codes import Reason, refusal
from svcctl.service.http.auth import signed
from svcctl.service.http.body import json_object, value_text
from svcctl.service.http.envelope import json_response
from svcctl.service.state.database import StateUnavailable
from svcctl.service.state.store import Store

Path = Mapping[str, str]
"""The parameters in the path of a request, by name."""
Operation = Callable[[Store, Account, Path, bytes], Any]
"""A function that does the work of a route and returns the content of the answer."""


def _list_domains(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return [domain.to_json() for domain in domains.list_domains(store, _reseller(account))]


def _get_domain(store: Store, account: Account, path: Path, body: bytes) -> Any:
    domain, members = domains.get(store, _reseller(account), path["domain"])
    return domain.to_json() | {"users": [member.to_json() for member in members]}


def _create_domain(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return domains.create(store, _reseller(account), _domain_fields(body)).to_json()


def _check_domain(store: Store, account: Account, path: Path, body: bytes) -> Any:
    """Check whether a domain with the fields in the body can be created.

    If the domain can be created, the member `key` of the answer is null. Otherwise `key` is the name of the refused
    field, and the answer also has the message and the hint.
    """
    reseller = _reseller(account)
    try:
        domains.check(store, reseller, _domain_fields(body))
    except ServiceError as error:
        return {"key": _KEYS.get(error.code or 0, "name"), "message": error.message, "hint": error.hint}
    return {"key": None}


_DOMAIN_FIELDS = ("name", "plan", "time", "volume", "status", "users")
_KEYS = {int(Reason.NO_PLAN): "plan", int(Reason.TIME): "time", int(Reason.VOLUME): "volume"}


def _enable_domain(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return domains.enable(store, _reseller(account), path["domain"]).to_json()


def _disable_domain(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return domains.disable(store, _reseller(account), path["domain"]).to_json()


def _delete_domain(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return domains.delete(store, _reseller(account), path["domain"]).to_json()


def _list_roles(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return [role.to_json() for role in roles.list_roles(store, account, path["domain"])]


def _list_available(store: Store, account: Account, path: Path, body: bytes) -> Any:
    available = roles.available(store, account, path["domain"])
    return {"policies": list(available.policies), "applications": list(available.applications)}


def _create_role(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return roles.create(store, account, path["domain"], _fields(body)).to_json()


def _get_role(store: Store, account: Account, path: Path, body: bytes) -> Any:
    named = store, account, path["domain"], path["role"]
    return roles.get(*named).to_json() | {"users": roles.users(*named)}


def _update_role(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return roles.update(store, account, path["domain"], path["role"], _fields(body)).to_json()


def _delete_role(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return roles.delete(store, account, path["domain"], path["role"]).to_json()


def _route(method: str, path: str, operation: Operation, *, settling: bool = False) -> Route:
    """Make a route for an operation. `settling` is true if the operation may change whether a domain can be accessed.

    If a domain can no longer be accessed after the operation, the service ends the domain's jobs and answers. If a
    domain can be accessed again, the service resumes the domain's jobs.
    """

    def endpoint(request: Request) -> Response:
        state, service = request.state, request.app.state.service
        content = operation(service.store, state.account, request.path_params, state.body)
        if settling:
            with suppress(StateUnavailable):  # the change is saved, and the service settles again by itself
                request.app.state.settle()
        return json_response(content)

    return signed(method, path, endpoint)


# The name of a role may contain a slash, so the name is the whole rest of the path. The name of a domain has no slash.
ROUTES = (
    _route("GET", "/domain", _list_domains),
    _route("POST", "/domain", _create_domain),
    _route("POST", "/domain/{domain:path}/enable", _enable_domain, settling=True),
    _route("POST", "/domain/{domain:path}/disable", _disable_domain, settling=True),
    _route("POST", "/service/domain/check", _check_domain),
    _route("GET", "/service/domain/{domain}/available", _list_available),
    _route("GET", "/domain/{domain}/roles", _list_roles),
    _route("POST", "/domain/{domain}/roles", _create_role),
    _route("GET", "/domain/{domain}/roles/{role:path}", _get_role),
    _route("PUT", "/domain/{domain}/roles/{role:path}", _update_role),
    _route("DELETE", "/domain/{domain}/roles/{role:path}", _delete_role),
    _route("GET", "/domain/{domain:path}", _get_domain),
    _route("DELETE", "/domain/{domain:path}", _delete_domain, settling=True),
)


def _reseller(account: Account) -> str:
    if account.reseller is None:
        raise refusal(
            Reason.NOT_RESELLER,
            "domain operations need the credentials of a reseller",
            data={"command": "domain"},
        )
    return account.reseller


def _domain_fields(body: bytes) -> dict[str, Any]:
    """Return the fields of a new domain from the body of a request.

    The body may be a copy of another domain's object. Unknown fields are refused, because they may be misspelt.
    """
    fields = _fields(body)
    for name in fields:
        if name not in _DOMAIN_FIELDS:
            raise refusal(Reason.BODY, f"unknown field '{value_text(name)}'")
    return fields


def _fields(body: bytes) -> dict[str, Any]:
    try:
        return json_object(body)
    except ServiceError as error:
        raise refusal(Reason.BODY, error.message) from None
