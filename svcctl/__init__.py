"""svcctl queries and exports stored events, and manages the jobs, domains and roles of the service.

As a library: `svcctl.connect` returns a client, and `svcctl help library` shows examples. The parts of the library are
imported when they are first used.
"""

TYPE_CHECKING = False  # importing `typing` would take a tenth of the time that the interpreter needs to start
if TYPE_CHECKING:
    from svcctl import errors
    from svcctl.api.columns import ResultColumn
    from svcctl.api.models import Domain, Job, Role
    from svcctl.library import QueryAnswer, ServiceClient, connect

__version__ = "0.1.0"
__all__ = ["Domain", "Job", "QueryAnswer", "ResultColumn", "Role", "ServiceClient", "connect", "errors"]

_MODULES = {"ResultColumn": "api.columns", "Domain": "api.models", "Job": "api.models", "Role": "api.models"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'svcctl' has no attribute '{name}'")
    from importlib import import_module

    if name == "errors":
        return import_module("svcctl.errors")
    return getattr(import_module(f"svcctl.{_MODULES.get(name, 'library')}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
