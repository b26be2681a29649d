"""The client as a library: it needs the standard library, httpx, msgpack and `svcctl.errors`, and nothing of the command line."""
