"""Files, bytes and the operating system, for all parts of svcctl. Nothing in this package depends on the service."""
