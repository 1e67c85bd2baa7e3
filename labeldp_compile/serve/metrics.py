"""What a service counts: rows and requests by artifact, never labels."""

from labeldp_verify.printable import printable
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

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
