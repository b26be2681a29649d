"""HTTP/1.1 for large answers: sockets, TLS, proxies, the heads of messages, and bodies that are read in large blocks.

`pool` is the transport, which keeps connections, `connection` is one of them, and `sockets` opens it. `heads` and
`bodies` are the protocol itself and know no sockets. `messages` and `failures` are the seam to the client. Importing
httpx would cost half as much as a whole small command, and h11, under it, 25 microseconds a chunk.
"""
