"""HTTP/1.1 for large answers: sockets, TLS and proxies, the heads of messages, and bodies taken apart in large blocks.

`opening` chooses what sends requests, `pool` keeps connections, `connection` is one of them, and `dialling` makes it.
`heads` and `bodies` are the protocol itself and know no sockets.
"""
