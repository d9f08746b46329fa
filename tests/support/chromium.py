"""A headless Chromium over its debugging pipe: no port, no library, one page at a time.

The program comes from the distribution. What happened in the page (requests, console, exceptions, violations of its
policy) is kept as events, so that a test can say that none did.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["Chromium", "find_chromium"]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PATIENCE_S = 60.0
_SETTLED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


def find_chromium() -> str | None:
    """Returns the path of a Chromium, or None."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


class Chromium:
    """A browser with one page; a context manager."""

    def __init__(self, program: str) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command_read, self._write = os.pipe()
        self._read, answer_write = os.pipe()
        # the browser reads commands from descriptor 3 and answers on 4; a shell puts them there without a fork hook
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
            f"--user-data-dir={self._folder.name}",
            "about:blank",
        ]
        script = f'exec 3<&{command_read} 4>&{answer_write}; exec "$0" "$@"'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, program, *flags],
            pass_fds=(command_read, answer_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command_read)
        os.close(answer_write)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)
        self._folder.cleanup()

    def send(self, method: str, **parameters: Any) -> Any:
        """Returns the answer to one command; events that come before it are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + _PATIENCE_S
        while True:
            answer = self._receive(until)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def evaluate(self, expression: str) -> Any:
        """Returns the value of an expression in the page, promises awaited."""
        answer = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def open(
        self, page: Path, *, width: int = 1280, height: int = 800, scheme: str = "light", fragment: str = ""
    ) -> None:
        """Loads a file of this machine and waits until it has drawn."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.send("Page.navigate", url="about:blank")
        self.events.clear()
        self.send("Page.navigate", url=page.resolve().as_uri() + fragment)
        until = time.monotonic() + _PATIENCE_S
        while not self.evaluate("document.readyState === 'complete' && location.protocol === 'file:'"):
            if time.monotonic() > until:
                raise TimeoutError(f"{page.name} did not load")
            time.sleep(0.02)
        self.settle()

    def settle(self) -> None:
        """Waits until what was asked for has been drawn."""
        self.evaluate(_SETTLED)

    def move(self, x: float, y: float, *, kind: str = "mouseMoved", shift: bool = False, held: bool = False) -> None:
        """Moves, presses (``mousePressed``) or releases (``mouseReleased``) the mouse."""
        button = "left" if held or kind != "mouseMoved" else "none"
        self.send(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=y,
            button=button,
            buttons=1 if held else 0,
            clickCount=0 if kind == "mouseMoved" else 1,
            modifiers=8 if shift else 0,
        )

    def click(self, selector: str) -> None:
        """Presses an element where it is seen."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{element}.scrollIntoView({{block: 'center'}})")
        self.settle()
        x, y = self.evaluate(
            f"(() => {{ const b = {element}.getBoundingClientRect();"
            " return [b.left + b.width / 2, b.top + b.height / 2]; })()"
        )
        self.move(x, y, kind="mousePressed", held=True)
        self.move(x, y, kind="mouseReleased")
        self.settle()

    def press(self, key: str, *, shift: bool = False) -> None:
        """Presses a key; ``key`` is what an event calls it."""
        named = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        common = {"key": key, "code": key, "windowsVirtualKeyCode": named.get(key, 0), "modifiers": 8 if shift else 0}
        down = {"text": text} if text else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", **common, **down)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Writes what is seen, or the whole page, as PNG."""
        options: dict[str, Any] = {}
        if whole:
            size = self.send("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
            options = {"captureBeyondViewport": True, "clip": clip}
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png", **options)["data"]))

    @property
    def requests(self) -> list[str]:
        """Addresses asked for since the page was opened; data of the page itself left out."""
        sent = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [url for url in sent if url != "about:blank"]

    @property
    def complaints(self) -> list[str]:
        """Exceptions, console output and log entries since the page was opened."""
        kinds = {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}
        return [json.dumps(event["params"])[:500] for event in self.events if event.get("method") in kinds]

    def _receive(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            data = os.read(self._read, 1 << 20) if ready else b""
            if not data:
                raise RuntimeError("the browser went away" if ready else "the browser does not answer")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(line)
        return answer
