"""HTTP/1.1 for large answers: sockets, TLS, proxies, the heads of messages, and bodies that are read in large blocks.

`pool` is the transport, which keeps connections open. `connection` implements a single connection, and `sockets` opens
sockets. `heads` and `bodies` implement the HTTP protocol without sockets. `messages` and `failures` are the interface
for the client. svcctl has its own HTTP client for the sake of speed. Importing httpx would take half the time of a
whole small command. The parser h11, which httpx uses, would take 25 microseconds per chunk.
"""
