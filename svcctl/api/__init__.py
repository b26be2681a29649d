"""The client as a library: the standard library, httpx, msgpack and `svcctl.errors`, nothing of the command line."""
