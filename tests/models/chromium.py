"""A headless Chromium, driven through pipes by its own protocol, without further packages."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)


def find_chromium():
    """The program, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next(filter(None, map(shutil.which, names)), None)


class Browser:
    """One page of a browser; use it in a ``with`` statement."""

    def __init__(self, program=None, timeout=30.0):
        self.timeout = timeout
        self.events = []
        self._numbers, self._waiting = itertools.count(1), b""
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read, self._send = os.pipe()
        self._receive, write = os.pipe()
        flags = (*FLAGS, f"--user-data-dir={self._folder.name}", "about:blank")
        command = f'exec "$@" 3<&{read} 4>&{write}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", command, "chromium", program or find_chromium(), *flags],
            pass_fds=(read, write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read)
        os.close(write)
        self._session = None
        try:
            (target,) = [
                each
                for each in self.call("Target.getTargets")["targetInfos"]
                if each["type"] == "page"
            ]
            attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
            self._session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._send)
        os.close(self._receive)
        self._folder.cleanup()

    def call(self, method, **parameters):
        """Ask the browser for something, and wait for its answer."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + self.timeout
        while True:
            answer = self._next(end)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self, end):
        while b"\0" not in self._waiting:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._receive], [], [], left)[0]:
                raise TimeoutError("Chromium did not answer in time")
            part = os.read(self._receive, 1 << 20)
            if not part:
                raise RuntimeError("Chromium ended")
            self._waiting += part
        message, _, self._waiting = self._waiting.partition(b"\0")
        return json.loads(message)

    def open(self, path, *, width=1280, height=800, dark=False, scripts=True):
        """Load a file; what the browser says from now on is in ``events``."""
        self.look(width, height, dark)
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.events.clear()
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        end = time.monotonic() + self.timeout
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._next(end))

    def look(self, width, height=800, dark=False):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def run(self, expression):
        """The value of an expression on the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def press(self, key, times=1):
        """Press a key such as "ArrowRight", as a person would."""
        codes = {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "Tab": 9, "Enter": 13}
        text = {"text": "\r"} if key == "Enter" else {}
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                self.call(
                    "Input.dispatchKeyEvent",
                    type=kind,
                    key=key,
                    code=key,
                    windowsVirtualKeyCode=codes[key],
                    **(text if kind == "keyDown" else {}),
                )

    def shoot(self, path, *, whole=False):
        """Save a picture of what is seen, or of the whole page."""
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=whole, format="png")
        Path(path).write_bytes(base64.b64decode(picture["data"]))

    def print(self, path):
        """Save the page as it would be printed."""
        Path(path).write_bytes(base64.b64decode(self.call("Page.printToPDF")["data"]))

    def requests(self):
        """Addresses that were asked for, apart from the page itself and data in it."""
        asked = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in asked[1:] if not url.startswith("data:")]

    def complaints(self):
        """Errors and warnings: of scripts, and of the browser about the page."""
        said = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                said.append(parameters["exceptionDetails"]["text"])
            elif method == "Runtime.consoleAPICalled":
                with contextlib.suppress(KeyError, IndexError):
                    said.append(str(parameters["args"][0]["value"]))
            elif method == "Log.entryAdded" and parameters["entry"]["level"] != "verbose":
                said.append(parameters["entry"]["text"])
        return said
