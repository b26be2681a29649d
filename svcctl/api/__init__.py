"""The client as a library: the standard library, certifi, httpx, msgpack and `svcctl.errors`, no command line."""

import sys

# Importing httpx loads its command line too, if it can; that would load rich and click and take 40 ms more.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
