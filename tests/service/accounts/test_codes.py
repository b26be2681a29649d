"""The codes of refusals: each with the HTTP status of its answer and the class of its error."""

from __future__ import annotations

from svcctl.errors import ServiceError
from svcctl.service.accounts.codes import Reason, reason_of, refusal


def test_every_reason_has_its_code_status_and_class() -> None:
    assert [(int(reason), reason.status, type(refusal(reason, "")).__name__) for reason in Reason] == [
        (106, 404, "NotFound"),
        (117, 409, "Conflict"),
        (118, 409, "Conflict"),
        (119, 409, "Conflict"),
        (120, 403, "CredentialsError"),
        (121, 400, "ServiceError"),
        (122, 409, "Conflict"),
        (123, 400, "ServiceError"),
        (124, 400, "ServiceError"),
        (125, 400, "ServiceError"),
        (126, 403, "CredentialsError"),
        (127, 409, "Conflict"),
        (128, 400, "ServiceError"),
        (131, 400, "ServiceError"),
        (132, 400, "ServiceError"),
        (133, 400, "ServiceError"),
        (134, 400, "ServiceError"),
        (135, 400, "ServiceError"),
        (136, 400, "ServiceError"),
        (137, 400, "ServiceError"),
        (138, 400, "ServiceError"),
        (139, 400, "ServiceError"),
        (140, 404, "NotFound"),
        (141, 409, "Conflict"),
        (142, 400, "ServiceError"),
    ]


def test_an_error_keeps_its_reason() -> None:
    error = refusal(Reason.TAKEN, "domain a@b already exists")
    assert (error.message, error.code, reason_of(error)) == ("domain a@b already exists", 122, Reason.TAKEN)
    assert reason_of(ServiceError("no table 't'")) is None
    assert reason_of(ServiceError("the body is too large", code=413)) is None
