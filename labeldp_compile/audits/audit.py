"""A black-box audit: draw, count, and test what a certificate or a person claims.

Five tests share the error of 1e-6. The draws that choose what to test are separate from the draws
that are tested, so few tests are enough:

    pilot      chooses the cells                            not tested
    screening  every label, alone and mixed with others     distribution, rows; chooses labels
    narrowing  the labels of the most promising pairs       chooses a pair and events
    final      the two labels of the best pair              ε
    sequences  one label                                    independence, processes
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from labeldp_verify import DEFAULT_BUDGET, Budget
from labeldp_verify.forms import JointDomain
from labeldp_verify.opening import open_artifact
from labeldp_verify.printable import at_least, at_most, down_to
from numpy.typing import NDArray

from labeldp_compile.audits.randomizer import (
    ArtifactTarget,
    AuditTarget,
    FunctionTarget,
    Reference,
    Sampler,
    Tally,
    as_returned,
    choose_cells,
    describe,
    drawn_in_children,
)
from labeldp_compile.audits.statistics import (
    Bits,
    Difference,
    Event,
    LabelCounts,
    bound_epsilon,
    chi_square,
    even_set,
    search_events,
    shared_between,
    shared_inside,
    unlike_each_other,
    unlike_expected,
)
from labeldp_compile.errors import InputError
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.report.facts import shown_table

FORMAT_VERSION = "1.0"
ERROR = 1e-6  # probability that an audit of a correct randomizer finds something


@dataclass(frozen=True)
class Finding:
    """One test: its name, whether it holds (None: could not be tried), and the details in words."""

    name: str
    ok: bool | None
    detail: str


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


def independence(sampler: Sampler, label: int, chosen: Bits, rows: int, error: float) -> Finding:
    """Whether rows, and calls, share their random bits; draws two sequences of ``rows`` rows.

    A row's bit is whether its output lies in the ``chosen`` set [cells].
    """
    call = sampler.rows(label, rows // _CALLS)
    first, second = (
        np.concatenate([chosen[sampler.cells.indices(sampler.draw(call))] for _ in range(_CALLS)])
        for _ in range(2)
    )
    shared = shared_inside(first, second, error)
    if shared is None:
        detail = f"no dependence between rows up to {rows // 2:,} apart"
        return Finding("independence", True, detail)
    return Finding(
        "independence",
        False,
        f"rows of one label that are {shared.distance:,} apart are not independent: both "
        f"outputs are in one set with probability {shared.together:.4f} instead of "
        f"{shared.independent:.4f}",
    )


def processes(
    target: AuditTarget, sampler: Sampler, label: int, chosen: Bits, rows: int, error: float
) -> Finding:
    """Whether a process repeats another's random bits; each draws at most ``rows`` rows."""
    call = sampler.rows(label, min(rows, _PROCESS_ROWS))
    drawn, failures = drawn_in_children(target, sampler.opened, call)
    sampler.count(len(call) * len(drawn))
    bits = {name: chosen[sampler.cells.indices(part)] for name, part in drawn.items()}
    pairs = list(combinations(bits, 2))
    for a, b in pairs:
        if shared_between(bits[a], bits[b], error / len(pairs)):
            return Finding("processes", False, f"{b} repeats the random bits of {a}")
    if failures:
        return Finding("processes", None, f"could not be tried: {failures[0]}")
    return Finding("processes", True, f"no dependence between {', '.join(bits)}")


MIN_SAMPLES = 100_000
_CALLS = 4  # one after the other in a sequence
_PROCESS_ROWS = 1 << 15
MAX_LABELS = 256
_EPSILON_ERROR, _OTHER_ERROR = 0.5 * ERROR, 0.1 * ERROR
# A p-value of chi-square is trusted within a factor of a hundred (benchmarks/notes/audit.md).
CHI_SQUARE_ERROR = _OTHER_ERROR / 100
_PILOT, _SCREENING, _NARROWING, _FINAL = 0.02, 0.40, 0.20, 0.33
_NARROWED_LABELS, _NARROWED_EVENTS = 16, 64
_FINAL_EVENTS = 6
_SUPPOSED = ("rows", "independence")  # tests of what the bound on ε supposes


@dataclass(frozen=True)
class AuditClaim:
    """The claims that an audit tests.

    Attributes:
        epsilon: ε of a label.
        source: who states it, in words.
        all_labels: number of labels of the randomizer.
        reference: certified probabilities, or None.
    """

    epsilon: float
    source: str
    all_labels: int
    reference: Reference | None = None


def audit_target(
    target: AuditTarget,
    labels: NDArray[Any],
    claim: AuditClaim,
    samples: int,
    observer: Observer = QUIET,
    *,
    processes: bool = True,
) -> AuditReport:
    """Audit a randomizer on labels [L], L ≥ 2, with about ``samples`` samples.

    The observer gets the number of randomized labels. Without ``processes``, no other process is
    started. Raises InputError if the randomizer cannot be opened or fails.
    """
    sampler = Sampler(target.open(), labels, observer)
    return _Audit(target, sampler, claim, samples).run(processes)


def choose_labels(count: int) -> list[int]:
    """Indices of the labels to try: all, or both ends, the middle and random neighbours."""
    if count <= MAX_LABELS:
        return list(range(count))
    generator = np.random.default_rng()
    starts = {0, count // 2, count - 2}
    while len(starts) < MAX_LABELS // 2:
        starts.add(int(generator.integers(count - 1)))
    return sorted({y for start in starts for y in (start, start + 1)})


def qualified(privacy: Finding, others: Sequence[Finding]) -> Finding:
    """The finding on ε, with a note if another finding refutes what its bound assumes."""
    failed = [other.name for other in others if other.name in _SUPPOSED and other.ok is False]
    if not failed:
        return privacy
    supposed = f"this bounds ε only if rows are independent, and {' and '.join(failed)} failed"
    return replace(privacy, detail=f"{privacy.detail}; {supposed}")


@dataclass(frozen=True)
class _Audit:
    """The common state of the tests."""

    target: AuditTarget
    sampler: Sampler
    claim: AuditClaim
    samples: int

    def run(self, processes: bool) -> AuditReport:
        L, sampler, reference = len(self.sampler.labels), self.sampler, self.claim.reference
        pilot = sampler.pilot(max(int(self.samples * _PILOT / 2 / L), 16))
        sampler.cells = choose_cells(pilot) if reference is None else reference.cells(pilot)
        a_label = max(int(self.samples * _SCREENING / 4 / L), 1)
        alone = sampler.alone(range(L), a_label), sampler.alone(range(L), a_label)
        mixed = sampler.mixed(a_label), sampler.mixed(a_label)
        findings: list[Finding] = []
        counts: list[LabelCounts] = []
        if reference is not None:
            findings.append(_outputs(reference.known(pilot), pilot))
            finding, counts = self.distribution(reference, alone, mixed)
            findings.append(finding)
        findings.append(self.rows(alone, mixed))
        bound, finding = self.epsilon((alone[0] + mixed[0], alone[1] + mixed[1]))
        findings += self.sequences(alone[0] + alone[1], processes)
        findings.insert(0, qualified(finding, findings))
        return AuditReport(
            self.target.name,
            sampler.drawn,
            (L, self.claim.all_labels),
            self.claim.epsilon,
            bound,
            tuple(findings),
            tuple(counts),
        )

    def distribution(
        self, reference: Reference, alone: tuple[Tally, Tally], mixed: tuple[Tally, Tally]
    ) -> tuple[Finding, list[LabelCounts]]:
        probabilities = reference.probabilities(self.sampler.cells)
        total = alone[0] + alone[1] + mixed[0] + mixed[1]
        tested = enumerate(zip(total.counts, probabilities, strict=True))
        tests = [chi_square(self.label(y), *of_label) for y, of_label in tested]
        tests.sort(key=lambda test: test.p_value)
        wrong = [
            difference
            for halves in (alone, mixed)
            for difference in unlike_expected(*halves, probabilities, _OTHER_ERROR / 2)
        ]
        worst, p = tests[0], min(tests[0].p_value * len(tests), 1.0)
        in_words = (
            f"smallest chi-square p-value: {worst.p_value:.2g} (label {worst.label}, "
            f"{worst.degrees_of_freedom} degrees of freedom), {p:.2g} over {len(tests):,} labels"
        )
        if wrong:
            in_words = f"{self.in_words(wrong)}; certified is {wrong[0].expected:.6g}; {in_words}"
        return Finding("distribution", not wrong and p > CHI_SQUARE_ERROR, in_words), tests

    def rows(self, alone: tuple[Tally, Tally], mixed: tuple[Tally, Tally]) -> Finding:
        first, second = ((alone[i], mixed[i]) for i in (0, 1))
        wrong = unlike_each_other(first, second, _OTHER_ERROR / 2)
        wrong += unlike_each_other(first[::-1], second[::-1], _OTHER_ERROR / 2)
        if not wrong:
            return Finding("rows", True, "an output does not depend on other labels of its call")
        return Finding(
            "rows",
            False,
            f"an output depends on other labels of its call: {self.in_words(wrong)} in calls of "
            f"one kind, and of at most {wrong[0].expected:.6g} in the other (one label or all)",
        )

    def epsilon(self, screened: tuple[Tally, Tally]) -> tuple[float, Finding]:
        promising = search_events(screened, _NARROWED_LABELS, _NARROWED_EVENTS)
        first, second = (self.drawn_for(promising, _NARROWING / 2) for _ in range(2))
        promising = search_events((first, second), 2, _FINAL_EVENTS)
        best = bound_epsilon(promising, self.drawn_for(promising, _FINAL), _EPSILON_ERROR)
        (seen, of), (seen_other, of_other), event = best.seen, best.seen_other, best.event
        return best.bound, Finding(
            "privacy",
            best.bound <= self.claim.epsilon,
            f"ε ≥ {down_to(best.bound)}, {self.claim.source} {at_most(self.claim.epsilon)}: "
            f"output {describe(self.sampler.cells, event.cells)} occurred {seen:,} times in "
            f"{of:,} for label {self.label(event.label)}, and {seen_other:,} times in "
            f"{of_other:,} for label {self.label(event.other)}",
        )

    def drawn_for(self, events: list[Event], share: float) -> Tally:
        """Samples of the labels of the events, up to this share of all samples."""
        chosen = sorted({y for event in events for y in (event.label, event.other)})
        return self.sampler.alone(chosen, max(int(self.samples * share / len(chosen)), 1))

    def sequences(self, screened: Tally, with_processes: bool) -> list[Finding]:
        rows = 1 << max(int(np.log2(self.samples / 40)), 10)
        label, chosen = even_set(screened)
        findings = [independence(self.sampler, label, chosen, rows, _OTHER_ERROR)]
        if not with_processes:
            return [*findings, Finding("processes", None, "not tried")]
        finding = processes(self.target, self.sampler, label, chosen, rows, _OTHER_ERROR)
        return [*findings, finding]

    def label(self, index: int) -> Any:
        """The label of an index, as a Python value."""
        return self.sampler.labels[index : index + 1].tolist()[0]

    def in_words(self, wrong: list[Difference]) -> str:
        first = wrong[0]
        output = describe(self.sampler.cells, first.cells)
        return (
            f"for label {self.label(first.label)}, output {output} has a probability of at least "
            f"{at_least(first.at_least)}"
        )


def _outputs(known: NDArray[np.bool_], pilot: NDArray[Any]) -> Finding:
    if known.all():
        return Finding("outputs", True, f"all {len(pilot):,} are outputs of the file")
    stranger = as_returned(np.asarray(pilot[~known][0]).item())  # 0.5 and not np.float64(0.5)
    return Finding(
        "outputs",
        False,
        f"{int((~known).sum()):,} of {len(pilot):,} are not outputs of the file, "
        f"for example {stranger!r}",
    )


def audit(
    artifact: str | os.PathLike[str],
    function: str | None = None,
    *,
    samples: int = 10_000_000,
    processes: bool = True,
    group: str | None = None,
    budget: Budget = DEFAULT_BUDGET,
    observer: Observer = QUIET,
) -> AuditReport:
    """Randomize made-up labels, and test the outputs against what an artifact certifies.

    This is a statistical test of the running code, in addition to the proof of the file by
    ``verify``. A correct randomizer fails one audit in a million; docs/audit.md has the error of
    each test.

    Args:
        artifact: the file; it is verified first.
        function: ``"module:function"``, from an array of labels [n] to n outputs, audited instead
            of labeldp-runtime.
        samples: labels to randomize, at least 100,000.
        processes: whether to start other processes, to check that they do not share random bits.
        group: if the artifact has a table for each group: the group to test, as ``labeldp report
            --group`` names it; by default the one with most rows.
        budget: of the verification; by default 20 s and 2 GB.
        observer: gets the number of randomized labels.

    Returns:
        The findings, and a lower bound on the ε of a label.

    Raises:
        VerificationError: the artifact does not verify; it is not run.
        InputError: a file or the function cannot be loaded, or fails.

    >>> from pathlib import Path
    >>> from labeldp_compile import audit, compile_spec
    >>> path = compile_spec("specs/health-rating.yaml").write(Path("build"))
    >>> report = audit(path, samples=100_000, processes=False)
    >>> report.labels, report.findings[0].name
    ((4, 4), 'privacy')
    """
    if samples < MIN_SAMPLES:
        raise InputError(f"an audit needs at least {MIN_SAMPLES:,} samples, got {samples:,}")
    path = Path(artifact)
    opened = open_artifact(path, budget)
    number = shown_table(opened, path, group)
    if isinstance(opened.label, JointDomain):
        raise InputError(
            f"{path}: has labels of several columns, and an audit tries labels of one: labeldp "
            "verify proves what the file does"
        )
    table, columns = opened.table(number), opened.groups.columns
    row = next(opened.groups.rows(number)) if columns else ()
    target = ArtifactTarget(
        path,
        opened.groups.name(number) if columns else None,
        tuple((column.name, value) for column, value in zip(columns, row, strict=True)),
    )
    reference = Reference(table, choose_labels(table.domain.size))
    bound = table.certificate.privacy.epsilon_label_bound
    claim = AuditClaim(bound, "certified at most", table.domain.size, reference)
    audited: AuditTarget = target if function is None else FunctionTarget(function)
    return audit_target(audited, reference.inputs(), claim, samples, observer, processes=processes)
