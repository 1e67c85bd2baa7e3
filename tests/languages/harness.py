"""Runs the examples in other languages: Node, headless Chromium and C++, each on a list of cases.

A case is a mapping: the artifact's ``file``; ``labels`` (text) of a ``type``, ``repeat`` times;
``words`` (hex), or else a number of ``calls`` with fresh ones, all at once, or one by one if
``timed``. Instead of labels it may have ``batches`` of them, all with the same words; null is a
null label there, and the type ``bytes`` (hex) is text, valid or not. ``columns`` are those of
groups by name, each with a ``type`` and ``values`` (null for none); or in JavaScript ``options`` is
the text of an object that has them. Its answer has ``outputs`` of each call or batch as text
(floats as their 64 bits in hex), or ``seconds`` of each, or ``error``. A case with ``members``,
private labels as text (``outputs`` is their type), is answered with the labels in each of them, or
with what is wrong with it. Labels of several columns are a case of the type ``columns``: its
``labels`` are written as ``columns`` are, its outputs are those of each column by name (or of sets
one list), and its ``members``, if ``outputs`` is ``combinations``, are rows of pairs, a type and a
text. driver.mjs and driver.cc give the answers.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import onnxruntime

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
EXAMPLES = ROOT / "runtime/examples"
BUILD = ROOT / "build/languages"
HEADERS = BUILD / "headers"
LANGUAGES = ("node", "web", "cpp")
DEMO_ARTIFACT = "doctor-visits.onnx"  # what the demos load, in the directory of the cases
SECONDS = 1200  # the longest that one language may take
TYPES = {".mjs": "text/javascript", ".wasm": "application/wasm", "": "text/html"}

Cases = list[dict[str, Any]]


class LanguageError(Exception):
    """A language's program did not answer."""


def missing(language: str) -> str | None:
    """What this machine lacks for a language, or None."""
    if language == "cpp":
        if shutil.which("g++") is None:
            return "no g++"
        return None if HEADERS.is_dir() else "no C++ headers of ONNX Runtime"
    if not (EXAMPLES / language / "node_modules").is_dir():
        return f"onnxruntime-{language} is not installed"
    if language == "web":
        return None if chromium() else "no Chromium"
    return None if shutil.which("node") else "no Node"


def chromium() -> str | None:
    """The browser's command."""
    return shutil.which("chromium") or shutil.which("google-chrome")


def answers(language: str, cases: Cases, directory: Path) -> tuple[Cases, str]:
    """The answers to the cases, whose artifacts lie in ``directory``, and what the demo printed."""
    (directory / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    if language == "web":
        posted = _browse(directory)
        return posted["answers"], posted["demo"]
    if language == "node":
        command = ["node", str(HERE / "driver_node.mjs"), str(directory)]
        demo = ["node", str(EXAMPLES / "node/demo.mjs"), str(directory / DEMO_ARTIFACT)]
    else:
        command = [build(HERE / "driver.cc"), str(directory)]
        demo = [build(EXAMPLES / "cpp/demo.cc"), str(directory / DEMO_ARTIFACT)]
    _run(command)
    return json.loads((directory / f"{language}.json").read_text(encoding="utf-8")), _run(demo)


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise LanguageError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def build(source: Path) -> str:
    """Compile a C++ program against the shared library inside Python's onnxruntime."""
    library = BUILD / "lib"
    library.mkdir(parents=True, exist_ok=True)
    shared = next((Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.1.*"))
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        (library / name).unlink(missing_ok=True)
        (library / name).symlink_to(shared)
    triplet = _run(["g++", "-print-multiarch"]).strip()
    includes = [HEADERS, HEADERS / "onnxruntime", HEADERS / triplet]
    program = BUILD / source.stem
    command = ["g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread"]
    command += [f"-I{EXAMPLES / 'cpp'}", *(f"-isystem{path}" for path in includes), str(source)]
    command += [f"-L{library}", f"-Wl,-rpath,{library}", "-lonnxruntime", "-l:libcrypto.so.3"]
    _run([*command, "-o", str(program)])
    return str(program)


def _browse(directory: Path) -> dict[str, Any]:
    """Let headless Chromium answer the cases, over a server on this machine."""
    posted: queue.Queue[dict[str, Any]] = queue.Queue()

    class Handler(SimpleHTTPRequestHandler):
        extensions_map = TYPES

        def translate_path(self, path: str) -> str:
            if path.startswith("/cases/"):
                return str(directory / Path(path).name)
            if path == f"/runtime/examples/web/{DEMO_ARTIFACT}":
                return str(directory / DEMO_ARTIFACT)
            return str(ROOT / path.lstrip("/"))

        def do_POST(self) -> None:
            posted.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
    ):
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/tests/languages/driver_web.html"
        quiet = "background-networking component-update default-apps extensions gpu quic sync"
        browser = subprocess.Popen(
            [str(chromium()), "--headless", "--no-sandbox", "--no-first-run"]
            + [f"--disable-{name}" for name in (*quiet.split(), "dev-shm-usage")]
            + [f"--user-data-dir={profile}", address],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return posted.get(timeout=SECONDS)
        except queue.Empty:
            raise LanguageError("Chromium did not answer") from None
        finally:
            # The browser is several processes, in a session of their own.
            os.killpg(browser.pid, signal.SIGKILL)
            browser.wait()
            server.shutdown()
            thread.join()
