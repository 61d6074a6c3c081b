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
        answer = self.server.answers.get(self.path)
        self.server.asked.append(self.path)
        if answer is None:
            self.send_error(404)
            return
        content, length = answer
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


class Server:
    """Answers on the loopback: a content by path, and what length is claimed for it."""

    def __init__(self, http_server):
        self._server = http_server
        self.url = f"http://127.0.0.1:{http_server.server_port}"
        self.asked = http_server.asked

    def offer(self, path, content, *, length=None):
        self._server.answers[path] = (content, len(content) if length is None else length)
        return self.url + path


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    http_server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    http_server.answers, http_server.asked = {}, []
    thread = threading.Thread(target=http_server.serve_forever, daemon=True)
    thread.start()
    yield Server(http_server)
    http_server.shutdown()
    http_server.server_close()
    thread.join()


@pytest.fixture
def closed_port(monkeypatch):
    """Give an address at which nobody listens."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    return f"http://127.0.0.1:{port}"


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
