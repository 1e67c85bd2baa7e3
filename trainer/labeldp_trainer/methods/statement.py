"""The privacy statement of a run, as JSON and as one paragraph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from labeldp_verify.printable import one_line

FORMAT_VERSION = "1.0"
ADJACENCY = "replacing the label of one row; features and the number of rows are public"
_MAX_CHARACTERS = 20_000
TEST_LABELS = "metrics on the test set, which are computed from its true labels"


def written(number: float) -> str:
    """ε or δ with all its digits: a rounded one may promise more than is kept."""
    return repr(float(number)).removesuffix(".0")


@dataclass(frozen=True)
class Statement:
    """What a run promises.

    Attributes:
        method: its kind in the config.
        epsilon: of (ε, δ)-DP for one label, or None without privacy.
        delta: 0 for pure DP.
        mechanism: in words.
        details: numbers and digests behind ε.
        released: what the promise covers and may be given away.
        secret: what must not be given away.
        not_covered: what the run writes that the promise does not cover.
        remarks: further sentences of the paragraph.
        adjacency: what may change without being noticed.
        limits: what the proof leaves out.
    """

    method: str
    epsilon: float | None
    delta: float
    mechanism: str
    details: Mapping[str, Any] = field(default_factory=dict)
    released: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    adjacency: str = ADJACENCY
    limits: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The contents of ``privacy.json``."""
        return {
            "format_version": FORMAT_VERSION,
            "method": self.method,
            "adjacency": self.adjacency,
            "epsilon": self.epsilon,
            "delta": self.delta if self.epsilon is not None else None,
            "mechanism": self.mechanism,
            "details": dict(self.details),
            "released": list(self.released),
            "secret": list(self.secret),
            "not_covered": list(self.not_covered),
            "limits": list(self.limits),
            "statement": self.paragraph(),
        }

    def paragraph(self) -> str:
        """The contents of ``privacy.txt``: one line, whatever names a certificate brought in."""
        if self.epsilon is None:
            promise = f"There is no privacy: {self.mechanism}."
        else:
            kind = f"(ε = {written(self.epsilon)}"
            kind += ")-label-DP" if self.delta == 0 else f", δ = {written(self.delta)})-label-DP"
            promise = (
                f"What is released is {kind} under this adjacency: {self.adjacency}. "
                f"Mechanism: {self.mechanism}."
            )
        lists = (
            ("Released", self.released),
            ("Must stay secret", self.secret),
            ("Not covered", self.not_covered),
            ("Limits", self.limits),
        )
        sentences = [f"{title}: {'; '.join(items)}." for title, items in lists if items]
        return one_line(" ".join([promise, *sentences, *self.remarks]), _MAX_CHARACTERS)
