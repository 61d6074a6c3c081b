"""A folder with the real files, where there is one, and a server that sends whatever it is told."""

import http.server
import os
import socket
import threading
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data():
    if "FCORR_DATA" not in os.environ:
        pytest.skip("FCORR_DATA does not name the folder with the data sets")
    return Path(os.environ["FCORR_DATA"])


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path not in self.server.answers:
            self.send_error(404)
            return
        content, length = self.server.answers[self.path]
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    """Answers on the loopback: a content by path, and what length is claimed for it."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.answers, self.asked = {}, []

    def offer(self, path, content, *, length=None):
        self.answers[path] = (content, len(content) if length is None else length)
        return self.url + path


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
    thread.join()


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
