"""The client as a library: the standard library, certifi, idna, msgpack and `svcctl.errors`, no command line."""
