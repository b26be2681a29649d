"""The client as a library: the standard library, certifi, httpx, msgpack and `svcctl.errors`, no command line."""
