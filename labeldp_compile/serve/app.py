"""The HTTP service: routes, limits and logs. It never writes, logs or counts a label.

Errors have one sentence, which depends on names and shapes and never on labels. An error that
nobody foresaw is logged by its type alone, since its message could quote a label.
"""

import contextlib
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import anyio
from labeldp_runtime import GroupError, IdError, LabelError
from labeldp_verify.printable import printable
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from labeldp_compile.errors import InputError
from labeldp_compile.serve.command import Settings
from labeldp_compile.serve.served import (
    ARROW,
    JSON,
    Request,
    Served,
    arrow_answer,
    document,
    json_answer,
    page,
    read_arrow,
    read_json,
)

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class Metrics:
    """Counters of one service, in a registry of their own."""

    def __init__(self) -> None:
        """All start at 0."""
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "labeldp_requests", "Requests.", ["artifact", "status"], registry=self._registry
        )
        self._rows = Counter(
            "labeldp_rows", "Labels that were randomized.", ["artifact"], registry=self._registry
        )
        self._seconds = Histogram(
            "labeldp_request_seconds",
            "Seconds from the whole request to its answer.",
            ["artifact"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._reloads = Counter(
            "labeldp_reloads",
            "Times that files were read anew.",
            ["result"],
            registry=self._registry,
        )
        self._artifacts = Gauge(
            "labeldp_artifacts", "Artifacts that are served.", registry=self._registry
        )

    def answered(self, artifact: str, status: int, rows: int, seconds: float) -> None:
        """Count a request; ``artifact`` is one that is served, or empty."""
        artifact = printable(artifact)
        self._requests.labels(artifact, str(status)).inc()
        if rows:
            self._rows.labels(artifact).inc(rows)
            self._seconds.labels(artifact).observe(seconds)

    def loaded(self, artifacts: int, *, ok: bool) -> None:
        """Count a load of the files."""
        self._reloads.labels("ok" if ok else "failed").inc()
        self._artifacts.set(artifacts)

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self._registry)


_FEW_BYTES = 1 << 14  # of a body: it is answered at once, and larger ones in a thread
_HUNG_UP = 499  # as nginx counts it; nobody receives it
Load = Callable[[], dict[str, Served]]


class RefusedError(Exception):
    """A request that is answered with an error: its status and a sentence."""

    def __init__(self, status: int, reason: str, **headers: str) -> None:
        """``headers`` are sent with it."""
        super().__init__(reason)
        self.status, self.headers = status, {k.replace("_", "-"): v for k, v in headers.items()}


class Service:
    """The artifacts, and what is counted. ``load`` reads them anew."""

    def __init__(self, load: Load, settings: Settings) -> None:
        """Load the artifacts; raises what ``load`` raises."""
        self._load, self.settings, self.metrics = load, settings, Metrics()
        self.artifacts = load()
        self.metrics.loaded(len(self.artifacts), ok=True)
        self._allowance, self._since = float(settings.rate or 0), time.monotonic()

    def reload(self) -> None:
        """Read and verify the files anew; if that fails, the old ones stay."""
        try:
            self.artifacts = self._load()
        except Exception as error:
            self.metrics.loaded(len(self.artifacts), ok=False)
            log("reload failed; the old artifacts stay", error=type(error).__name__)
            return
        self.metrics.loaded(len(self.artifacts), ok=True)
        log("reloaded", artifacts=[one.described() for one in self.artifacts.values()])

    def require_room(self) -> None:
        """Raise RefusedError if there were too many requests in the last second."""
        rate = self.settings.rate
        if rate is None:
            return
        now = time.monotonic()
        self._allowance = min(float(rate), self._allowance + rate * (now - self._since))
        self._since = now
        if self._allowance < 1:
            raise RefusedError(429, "too many requests", retry_after="1")
        self._allowance -= 1

    def application(self) -> Starlette:
        """The ASGI application."""
        routes = [
            Route("/", self._guarded(self._page)),
            Route("/health", self._health),
            Route("/metrics", self._guarded(self._counted)),
            Route("/openapi.json", self._guarded(self._document)),
            Route("/v1/artifacts", self._guarded(self._listed)),
            Route("/v1/artifacts/{name}/randomize", self._randomize, methods=["POST"]),
        ]
        application = Starlette(
            routes=routes, lifespan=self._lifespan, middleware=[Middleware(_of_one_length)]
        )
        # A redirect would send true labels again, to a place that the caller's Host header names
        # and without TLS where a proxy adds it.
        application.router.redirect_slashes = False
        return application

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        async def reload_on_signal() -> None:
            with anyio.open_signal_receiver(signal.SIGHUP) as signals:
                async for _ in signals:
                    await anyio.to_thread.run_sync(self.reload)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reload_on_signal)
            yield
            tasks.cancel_scope.cancel()

    def _guarded(
        self, answer: Callable[[], Response]
    ) -> Callable[[HttpRequest], Awaitable[Response]]:
        async def guarded(request: HttpRequest) -> Response:
            try:
                self._require_permitted(request)
            except RefusedError as refusal:
                return _refusal(refusal)
            return answer()

        return guarded

    def _require_permitted(self, request: HttpRequest) -> None:
        if not self.settings.serves(request.headers.get("host")):
            raise RefusedError(421, "the service is asked by another name: give it a token file")
        if not self.settings.permits(request.headers.get("authorization")):
            raise RefusedError(401, "the token is missing or wrong", www_authenticate="Bearer")

    async def _health(self, request: HttpRequest) -> Response:
        return _json({"status": "ok"})

    def _counted(self) -> Response:
        return Response(self.metrics.text(), media_type=CONTENT_TYPE)

    def _listed(self) -> Response:
        return _json({"artifacts": [one.described() for one in self.artifacts.values()]})

    def _document(self) -> Response:
        return _json(document(self.artifacts.values(), with_token=self.settings.token is not None))

    def _page(self) -> Response:
        return HTMLResponse(page(self.artifacts.values()))

    async def _randomize(self, request: HttpRequest) -> Response:
        began, name, rows = time.perf_counter(), request.path_params["name"], 0
        served = self.artifacts.get(name)
        try:
            self._require_permitted(request)
            if served is None:
                raise RefusedError(
                    404, "there is no artifact of this name: GET /v1/artifacts lists them"
                )
            self.require_room()
            answer, rows = await self._answered(request, served)
        except RefusedError as refusal:
            answer = _refusal(refusal)
        except ClientDisconnect:
            answer = _refusal(RefusedError(_HUNG_UP, "the caller hung up"))
        except Exception as error:  # its message could quote a label
            log("failed", error=type(error).__name__)
            answer = _refusal(RefusedError(500, "the service failed"))
        seconds = time.perf_counter() - began
        known = "" if served is None else name
        self.metrics.answered(known, answer.status_code, rows, seconds)
        log(
            "request",
            artifact=known,
            status=answer.status_code,
            rows=rows,
            milliseconds=round(1e3 * seconds, 2),
        )
        return answer

    async def _answered(self, request: HttpRequest, served: Served) -> tuple[Response, int]:
        body = await self._body(request)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (JSON, ARROW):
            # A page of another site can send a body without a type, and none of these.
            raise RefusedError(415, f"the body must be {JSON} or {ARROW}, and Content-Type say so")
        query = dict(request.query_params)
        if len(query) < len(request.query_params.multi_items()):
            raise RefusedError(400, "the query names something twice")
        if not query.keys() <= (set() if kind == JSON else {"id", "version"}):
            raise RefusedError(
                400, "only id and version of an Arrow stream are in the query: JSON holds its own"
            )

        def drawn() -> tuple[bytes, int]:
            return self._drawn(body, kind, served, query.get("id"), query.get("version"))

        if len(body) <= _FEW_BYTES:
            content, rows = drawn()
        else:
            content, rows = await anyio.to_thread.run_sync(drawn)
        return Response(content, media_type=kind), rows

    def _drawn(
        self, body: bytes, kind: str, served: Served, id_column: str | None, version: str | None
    ) -> tuple[bytes, int]:
        drawer = served.randomizer
        wanted = [*drawer.label_columns, *drawer.group_columns]
        try:
            if kind == JSON:
                asked = read_json(body, wanted)
            else:
                if id_column in drawer.private_columns:
                    raise InputError("the id column has the name of a private column")
                asked = read_arrow(body, wanted, id_column, version, self.settings.most_rows)
            if asked.rows > self.settings.most_rows:
                raise InputError(f"a request has at most {self.settings.most_rows:,} rows")
            private = self._private(served, asked)
        except (InputError, LabelError, GroupError, IdError) as error:
            raise RefusedError(400, str(error)) from None
        if kind == JSON:
            return json_answer(private), asked.rows
        return arrow_answer(private, id_column, asked.ids), asked.rows

    @staticmethod
    def _private(served: Served, asked: Request) -> dict[str, Any]:
        if not served.randomizer.is_keyed and (asked.ids is not None or asked.version):
            raise InputError("this service has no key, so it takes no ids and no version")
        return served.draw(asked.columns, asked.ids, asked.version)

    async def _body(self, request: HttpRequest) -> bytes:
        most, parts, size = self.settings.most_bytes, [], 0
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise RefusedError(413, f"a body has at most {most:,} bytes", connection="close")
            parts.append(part)
        return b"".join(parts)


def _of_one_length(application: ASGIApp) -> ASGIApp:
    """Refuse requests that state their length in two ways, and close their connection.

    A proxy that believes the other one takes a part of one caller's request for another request,
    and gives its answer to the next caller.
    """

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        names = {name for name, _ in scope.get("headers", ())}
        if {b"content-length", b"transfer-encoding"} <= names:
            reason = "the request has both Content-Length and Transfer-Encoding"
            await _refusal(RefusedError(400, reason, connection="close"))(scope, receive, send)
        else:
            await application(scope, receive, send)

    return checked


def _refusal(refused: RefusedError) -> Response:
    return _json({"error": str(refused)}, refused.status, refused.headers)


def _json(facts: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer in ASCII: names of a file may steer the terminal of a caller."""
    return Response(json.dumps(facts, separators=(",", ":")), status, headers, media_type=JSON)


def log(event: str, **facts: Any) -> None:
    """Write an event to standard error, as a line of JSON: no label, id or text of a caller.

    Names from files are escaped as JSON escapes them, to ASCII.
    """
    line = {"time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}", "event": event, **facts}
    sys.stderr.write(json.dumps(line) + "\n")
    sys.stderr.flush()
