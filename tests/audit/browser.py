"""Chromium without a window, driven by its DevTools protocol through a pipe."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)


class Browser:
    """One page at a time. Close it, or use it in a ``with`` block."""

    def __init__(self):
        # Processes of Chromium's own may write for a moment longer than it lives.
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self._out = os.pipe()
        self._in, answers = os.pipe()
        options = f"--headless --no-sandbox --disable-gpu --user-data-dir={self._folder.name}"
        command = f"exec {CHROMIUM} {options} --remote-debugging-pipe 3<&{commands} 4>&{answers}"
        self._process = subprocess.Popen(
            ["bash", "-c", command], pass_fds=(commands, answers), stderr=subprocess.DEVNULL
        )
        os.close(commands)
        os.close(answers)
        self._read = b""
        self._ids = itertools.count(1)
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    _session = None

    def _next(self):
        while b"\0" not in self._read:
            piece = os.read(self._in, 2**16)
            assert piece, "Chromium has gone"
            self._read += piece
        message, self._read = self._read.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        """Call a method of the protocol, and return its result."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        sent = json.dumps(message).encode() + b"\0"
        while sent:
            sent = sent[os.write(self._out, sent) :]
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def open(self, path):
        """Open a file, and wait until it is loaded."""
        self.events.clear()
        self.call("Page.navigate", url=f"file://{path}")
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())
        return self

    def run(self, expression):
        """Evaluate an expression in the page; promises are waited for."""
        options = {"returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def look(self, width, *, dark=False, height=1200, whole=False):
        """Return a picture of the page as a screen of that width shows it, as PNG."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.call("Emulation.setDeviceMetricsOverride", **size, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(picture["data"])

    def print(self):
        """Return the page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF")["data"])

    def close(self):
        self._process.terminate()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
