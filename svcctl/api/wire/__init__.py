"""HTTP/1.1 for large answers: sockets, TLS, proxies, the heads of messages, and bodies that are read in large blocks.

`pool` is the transport, which keeps connections open. `connection` has a single connection, and `sockets` opens
sockets. `heads` and `bodies` are the protocol itself; they do not use sockets. `messages` and `failures` are the
interface to the client. svcctl has its own HTTP client for its speed: importing httpx would take half as long as a
whole small command, and its parser h11 would take 25 microseconds per chunk.
"""
