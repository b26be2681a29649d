"""HTTP/1.1 for large answers: sockets, TLS, proxies, the heads of messages, and bodies that are read in large blocks.

`pool` is the transport, which keeps connections open. `connection` implements a single connection, and `sockets` opens
sockets. `heads` and `bodies` implement the HTTP protocol without sockets. `messages` and `failures` define the classes
that callers use. svcctl has its own HTTP client because httpx is slow to import and slow to read chunks.
"""
