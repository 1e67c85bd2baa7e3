"""What an audit found."""

from dataclasses import asdict, dataclass
from typing import Any

FORMAT_VERSION = "1.0"
ERROR = 1e-6  # probability that an audit of a correct randomizer finds something


@dataclass(frozen=True)
class Finding:
    """One test: its name, whether it holds (None: could not be tried), and the details in words."""

    name: str
    ok: bool | None
    detail: str


@dataclass(frozen=True)
class LabelCounts:
    """Pearson's chi-square statistic of one label against its certified probabilities."""

    label: Any
    samples: int
    chi_square: float
    degrees_of_freedom: int
    p_value: float


@dataclass(frozen=True)
class AuditReport:
    """The result of one audit.

    Attributes:
        audited: the randomizer in words.
        samples: labels randomized.
        labels: how many labels were tried, and how many there are.
        epsilon: the certified or claimed ε.
        epsilon_lower_bound: a label spends at least this, with an error of at most ``ERROR``.
        findings: one per test.
        counts: one per label, worst first; empty without certified probabilities.
    """

    audited: str
    samples: int
    labels: tuple[int, int]
    epsilon: float
    epsilon_lower_bound: float
    findings: tuple[Finding, ...]
    counts: tuple[LabelCounts, ...]

    @property
    def ok(self) -> bool:
        """True if no test failed."""
        return all(finding.ok is not False for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """``{format_version, ok, audited, samples, …, findings, labels}``."""
        return {
            "format_version": FORMAT_VERSION,
            "ok": self.ok,
            "audited": self.audited,
            "samples": self.samples,
            "error": ERROR,
            "labels_tried": self.labels[0],
            "labels_in_all": self.labels[1],
            "epsilon": self.epsilon,
            "epsilon_lower_bound": self.epsilon_lower_bound,
            "findings": [asdict(finding) for finding in self.findings],
            "labels": [asdict(counts) for counts in self.counts],
        }
