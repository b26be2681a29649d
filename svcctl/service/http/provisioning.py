"""The routes of domains and roles: who may ask, what the body holds, and the interface's error object.

Every answer is the domain or role object concerned (or a list of them), also where the interface shows none: enable,
disable and delete return the domain, the role operations the role. Every refusal is `{"error": {"code", "message"}}`,
for roles too. Additions to the interface: reading, listing and deleting roles, and `users` in a single domain's object.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from svcctl.errors import ServiceError
from svcctl.service.provisioning import domains, roles
from svcctl.service.provisioning.codes import REFUSALS, Code, refused

if TYPE_CHECKING:
    from svcctl.service.provisioning.accounts import Account
    from svcctl.service.service import Service
    from svcctl.service.store import Store

Path = Mapping[str, str]
"""The parameters of a request's path."""
Operation = Callable[["Store", "Account", Path, bytes], Any]
"""What a route does; it returns the answer's content, in a thread since it waits for the disk (and
in none of the engine's, which may all be busy with queries)."""


def _list_domains(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return [domain.to_json() for domain in domains.listed(store, _reseller(account))]


def _get_domain(store: Store, account: Account, path: Path, body: bytes) -> Any:
    domain, members = domains.get(store, _reseller(account), path["domain"])
    return domain.to_json() | {"users": [member.to_json() for member in members]}


def _create_domain(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return domains.create(store, _reseller(account), _fields(body)).to_json()


def _enable_domain(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return domains.enable(store, _reseller(account), path["domain"]).to_json()


def _disable_domain(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return domains.disable(store, _reseller(account), path["domain"]).to_json()


def _delete_domain(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return domains.delete(store, _reseller(account), path["domain"]).to_json()


def _list_roles(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return [role.to_json() for role in roles.listed(store, account, path["domain"])]


def _create_role(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return roles.create(store, account, path["domain"], _fields(body)).to_json()


def _get_role(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return roles.get(store, account, path["domain"], path["role"]).to_json()


def _update_role(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return roles.update(store, account, path["domain"], path["role"], _fields(body)).to_json()


def _delete_role(store: Store, account: Account, path: Path, body: bytes) -> Any:
    return roles.delete(store, account, path["domain"], path["role"]).to_json()


@dataclass(frozen=True, slots=True)
class ProvisioningRoute:
    method: str
    path: str
    operation: Operation

    async def __call__(self, service: Service, request: Request, body: bytes) -> Response:
        """The answer to an authorized request, its refusal too."""
        try:
            content = await asyncio.to_thread(
                self.operation, service.store, request.state.account, request.path_params, body
            )
        except ServiceError as error:
            if error.code not in REFUSALS:
                raise
            return _json({"error": {"code": error.code, "message": error.message}}, REFUSALS[Code(error.code)].status)
        return _json(content, 200)


# A role's name may hold a slash, so it is the rest of its path.
ROUTES = (
    ProvisioningRoute("GET", "/domain", _list_domains),
    ProvisioningRoute("POST", "/domain", _create_domain),
    ProvisioningRoute("GET", "/domain/{domain}", _get_domain),
    ProvisioningRoute("DELETE", "/domain/{domain}", _delete_domain),
    ProvisioningRoute("POST", "/domain/{domain}/enable", _enable_domain),
    ProvisioningRoute("POST", "/domain/{domain}/disable", _disable_domain),
    ProvisioningRoute("GET", "/domain/{domain}/roles", _list_roles),
    ProvisioningRoute("POST", "/domain/{domain}/roles", _create_role),
    ProvisioningRoute("GET", "/domain/{domain}/roles/{role:path}", _get_role),
    ProvisioningRoute("PUT", "/domain/{domain}/roles/{role:path}", _update_role),
    ProvisioningRoute("DELETE", "/domain/{domain}/roles/{role:path}", _delete_role),
)


def _reseller(account: Account) -> str:
    if account.reseller is None:
        raise refused(Code.NOT_RESELLER, "domain operations need the credentials of a reseller")
    return account.reseller


def _fields(body: bytes) -> dict[str, Any]:
    """The JSON object of a body; text that is no Unicode is refused here, once."""
    try:
        fields = json.loads(body)
        json.dumps(fields, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise refused(Code.BODY, "the body is not JSON") from None
    if not isinstance(fields, dict):
        raise refused(Code.BODY, "the body is not a JSON object")
    return fields


def _json(content: Any, status: int) -> Response:
    return Response(json.dumps(content, ensure_ascii=False), status, media_type="application/json")
