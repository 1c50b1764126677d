"""A real HTTP server on loopback with a tiny model behind it, and the faults that servers have.

Faults are what no well-kept server can be made to show at will; all else here is real.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from tests.endpoints.speaking import Speaker

KEY = "sk-test-4711-do-not-tell"


@dataclass
class Reply:
    """What is sent for a request; `stall_s` before it, and `cut` closes the line instead."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    stall_s: float = 0.0
    cut: bool = False
    truncate: bool = False


Fault = Callable[[int, str, Mapping[str, Any], dict[str, Any]], Reply | None]


def error(status: int, message: str, *, code: str | None = None, **headers: str) -> Reply:
    """An error as OpenAI words it."""
    said = {"message": message, "type": "error", "code": code}
    return Reply(status, {"error": said}, {k.replace("_", "-"): v for k, v in headers.items()})


class ApiServer:
    """Counts what it was asked and what it answered well; `fault` may spoil a reply.

    `fault(number, path, body, answer)` sees the number of the request among those that score.
    """

    def __init__(self, speaker: Speaker, *, fault: Fault | None = None, key: str = "") -> None:
        self.speaker, self.fault, self.key = speaker, fault, key
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.answered: list[str] = []  # the bodies of requests that got their answer
        self.at_once = self.most_at_once = 0
        self.lock = Lock()
        self.url = ""

    def reply(self, path: str, body: Mapping[str, Any], key: str) -> Reply:
        if self.key and key != f"Bearer {self.key}":
            return error(401, f"Incorrect API key provided: {key.removeprefix('Bearer ')}.")
        answer = self.speaker.answer(path, body)
        if path.endswith("/models"):
            return Reply(200, answer)
        with self.lock:
            number = len(self.asked)
            self.asked.append((path, body))
        spoiled = self.fault(number, path, body, answer) if self.fault is not None else None
        return spoiled or Reply(200, answer)


def _handler(api: ApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(api.reply(self.path, {}, self.headers.get("Authorization", "")), None)

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"]))
            with api.lock:
                api.at_once += 1
                api.most_at_once = max(api.most_at_once, api.at_once)
            try:
                body = json.loads(text)
                reply = api.reply(self.path, body, self.headers.get("Authorization", ""))
                self._send(reply, json.dumps([self.path, body], sort_keys=True))
            finally:
                with api.lock:
                    api.at_once -= 1

        def _send(self, reply: Reply, asked: str | None) -> None:
            time.sleep(reply.stall_s)
            if reply.cut:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            data = json.dumps(reply.body).encode()
            if reply.truncate:
                data = data[: len(data) // 2]
            try:
                self.send_response(reply.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                return  # the client went away
            if asked is not None and reply.status == 200:
                with api.lock:
                    api.answered.append(asked)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on the terminal."""

    return Handler


@contextmanager
def serving(api: ApiServer) -> Iterator[ApiServer]:
    """The server on a free port of loopback, until the end of the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(api))
    server.daemon_threads = True
    api.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
