"""Headless Chromium over its own protocol: pages opened, requests and complaints recorded.

The protocol runs over a pair of pipes (``--remote-debugging-pipe``): JSON ended by a zero byte, the
browser's file descriptors 3 and 4.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.languages.harness import chromium

SECONDS = 300  # the longest that one answer may take
_SETTLE = 0.05
_QUIET = "background-networking component-update default-apps extensions gpu sync dev-shm-usage"


class BrowserError(Exception):
    """The browser did not answer, or refused."""


class Page:
    """One tab: what it asked for, and what it complained of."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._write, self._read = to_browser, from_browser
        self._buffer, self._count, self._session = b"", 0, None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._loaded: set[str] = set()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def open(self, address: str, *, dark: bool = False, width: int = 1280) -> None:
        """Load a page and wait until it has; forgets what earlier ones did."""
        self._load("about:blank")  # what the page before still had to say is said now
        self.requests.clear()
        self.complaints.clear()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        self._load(address)
        time.sleep(_SETTLE)
        self.run("0")  # reads what the load set off

    def _load(self, address: str) -> None:
        loader = self.call("Page.navigate", url=address)["loaderId"]
        while loader not in self._loaded:
            self._receive()

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression, as JSON."""
        options = {"awaitPromise": True, "returnByValue": True}
        answer = self.call("Runtime.evaluate", expression=expression, **options)
        if "exceptionDetails" in answer:
            raise BrowserError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def screenshot(self, path: Path, clip: dict[str, float] | None = None) -> None:
        """The whole page, or a part of it, as PNG."""
        options = {} if clip is None else {"clip": {**clip, "scale": 1}}
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True, **options)
        path.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self) -> bytes:
        """What would be printed."""
        answer = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=False)
        return base64.b64decode(answer["data"])

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the protocol; returns its answer."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return answer["result"]

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(deadline - time.monotonic(), 0))
            part = os.read(self._read, 1 << 20) if ready else b""
            if not part:
                raise BrowserError("Chromium did not answer")
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, details: dict[str, Any]) -> None:
        if event == "Page.lifecycleEvent" and details["name"] == "load":
            self._loaded.add(details["loaderId"])
        elif event == "Network.requestWillBeSent":
            self.requests.append(details["request"]["url"])
        elif event == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning"):
            self.complaints.append(json.dumps(details["args"]))
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(details["exceptionDetails"]))
        elif event == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
            self.complaints.append(details["entry"]["text"])


@contextmanager
def browser_page() -> Iterator[Page]:
    """A tab of a browser that ends with it."""
    to_browser, from_browser = os.pipe(), os.pipe()
    # High numbers, so that moving them to 3 and 4 cannot tread on either.
    ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in (to_browser[0], from_browser[1])]

    def take_places() -> None:
        os.dup2(ends[0], 3)
        os.dup2(ends[1], 4)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = subprocess.Popen(
            [str(chromium()), "--headless", "--no-sandbox", "--no-first-run"]
            + ["--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
            + [f"--disable-{name}" for name in _QUIET.split()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=(3, 4),
            preexec_fn=take_places,  # noqa: PLW1509  # there are no threads here
        )
        for fd in (to_browser[0], from_browser[1], *ends):
            os.close(fd)
        try:
            yield Page(to_browser[1], from_browser[0])
        finally:
            # The browser is several processes, in a session of their own.
            os.killpg(browser.pid, signal.SIGKILL)
            browser.wait()
            os.close(to_browser[1])
            os.close(from_browser[0])
