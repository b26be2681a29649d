"""What a job says of Kafka brokers that cannot be reached; no broker is needed for it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Thread

import pytest
from peers.processes import free_port

from svcctl.errors import Unavailable
from svcctl.service.destinations.kafka import CHECK, Kafka
from svcctl.service.destinations.params import Params


def impatient(params: Mapping[str, str]) -> Kafka:
    """The destination of a job, which waits for one second only."""
    return Kafka("job", Params("kafka", params, endless=True), first_wait=1.0)


def test_brokers_that_nobody_runs_are_named_with_the_reason() -> None:
    closed = f"127.0.0.1:{free_port()}"
    params = {"topic": "t", "bootstrap.servers": f"{closed},nowhere.invalid:9092"}
    destination = impatient(params)
    with pytest.raises(Unavailable) as caught:
        destination.open(0, {}, b"")
    destination.close()
    assert caught.value.message == (
        f"kafka: no connection to {closed}: Connection refused; nowhere.invalid:9092: Name or service not known"
    )


def hangs_up(connection: socket.socket) -> None:
    """Read a request, and close."""
    connection.recv(1000)


def sends_a_page(connection: socket.socket) -> None:
    """What a web server answers to a request that is not one of HTTP."""
    connection.recv(1000)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """The address of a server that answers each connection, and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                connection, _ = server.accept()
                with connection, suppress(OSError):  # the client may hang up first
                    if connection.getpeername() == stops:
                        return
                    answer(connection)

        last = socket.socket()
        last.bind(("127.0.0.1", 0))
        stops = last.getsockname()
        thread = Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            with last:
                last.connect(server.getsockname())
                thread.join()


TLS = {"security.protocol": "SSL"}
NO_TLS = "{} answers, but not with TLS: check the port, and security.protocol if the broker does not use TLS"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "settings", "told"),
    [
        (sends_a_page, {}, f"{{}} answers, but not as Kafka: {CHECK}"),
        (hangs_up, {}, f"no Kafka broker answers at {{}} within 1s: {CHECK}"),
        (hangs_up, TLS, NO_TLS),
        (sends_a_page, TLS, NO_TLS),
    ],
)
def test_a_port_that_is_not_kafkas_or_not_with_the_right_protocol_is_told(
    answer: Callable[[socket.socket], None], settings: dict[str, str], told: str
) -> None:
    with listening(answer) as address:
        destination = impatient({"topic": "t", "bootstrap.servers": address, **settings})
        with pytest.raises(Unavailable) as caught:
            destination.open(0, {}, b"")
        destination.close()
    assert caught.value.message == f"kafka: {told.format(address)}"
