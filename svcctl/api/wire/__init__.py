"""HTTP/1.1 for large answers: sockets, TLS and proxies, the heads of messages, and bodies taken apart in large blocks.

`pool` is a transport of httpx that keeps connections, `connection` is one of them, and `sockets` opens it. `heads` and
`bodies` are the protocol itself and know no sockets. h11, under httpx's own transport, costs 25 microseconds a chunk.
"""
