"""The subjects of a policy: where they lie, and the facts of each that its rules look at."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from labeldp_verify.analysis import LOSSES
from labeldp_verify.artifact import Artifact
from labeldp_verify.claims import Certificate, person_epsilon, rational
from labeldp_verify.forms import Integers, JointDomain, are_numbers
from labeldp_verify.usefulness.figures import Usefulness
from labeldp_verify.usefulness.shortcomings import Shortcoming, relevant

from labeldp_compile.errors import InputError
from labeldp_compile.ledger_url import is_url

if TYPE_CHECKING:
    from labeldp_compile.build.forecast import EpsilonBudget
    from labeldp_compile.build.plan import Plan
    from labeldp_compile.check.policy import GatePolicy
    from labeldp_compile.ledger.entries import Entry

Kind = Literal["artifact", "plan", "training run", "ledger", "folder of parts", "unknown"]
Worth = Literal["proved", "declared", "estimated", "counted"]
RUN_FILES = ("run.json", "privacy.json")
_SQLITE = b"SQLite format 3\0"
_LEDGER = b"LDPL"  # the application's number in a header of SQLite
_AT = 68
MAX_FILES = 100_000
_WALKED = ("unknown", "folder of parts", "training run")  # in which other things may lie
Spending = tuple[Fraction, Fraction]
"""δ and ε."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The known facts of one subject; None where nothing is known.

    Attributes:
        kind, name: as in ``Judged``.
        worth: of ε of a label and of a person.
        label: ε of one draw; ``total`` with the prior.
        labels: how many labels a person has at most; ``person`` is what they spend together.
        delta: of a training run.
        mechanism: of an artifact or a plan; the method of a run.
        protects: ``label`` or ``person``.
        group_rows: the fewest rows of a group with its own table.
        uses: figures of each table, and whether labels are numbers.
        bias, outputs, warnings: as ``verify`` finds them.
        settled: whether ``uses``, bias, outputs and warnings are final; a prior can change those
            of a plan.
        booked: what decides whether a private prior is in a ledger.
        entries: of a ledger; of a plan, those of its spec's.
        spends: what a plan is about to spend on a data set.
        integers, artifact_path, data: of an artifact.
    """

    kind: Kind
    name: str = ""
    worth: Worth = "declared"
    label: Fraction | None = None
    total: Fraction | None = None
    labels: int | None = None
    person: tuple[Spending, ...] = ()
    delta: Fraction = Fraction(0)
    mechanism: str | None = None
    protects: str | None = None
    group_rows: int | None = None
    uses: tuple[Usefulness, ...] = ()
    numbers: bool = False
    settled: bool = True
    bias: float | None = None
    outputs: int | None = None
    warnings: tuple[Shortcoming, ...] = ()
    certificate: Certificate | None = None
    integers: Integers | None = None
    entries: tuple[Entry, ...] = ()
    spends: tuple[str, Fraction, datetime] | None = None
    ledger: str | None = None
    artifact_path: Path = Path()
    data: bytes = b""


def of_artifact(path: Path, data: bytes, artifact: Artifact, *, with_use: bool) -> Subject:
    """The facts of a verified artifact; its figures of use are only computed if they are asked."""
    stated = artifact.certificate
    exact, groups, person = stated.exact, artifact.groups, person_epsilon(stated)
    spent: list[Spending] = []
    if person is not None:
        spent.append((Fraction(0), person.bound + person.prior))
        spent += [(Fraction(delta), epsilon) for delta, epsilon in person.at_delta]
    with_own_table = range(groups.own_tables)
    tables = range(groups.tables) if with_use else ()
    return Subject(
        kind="artifact",
        name=stated.name,
        worth="proved",
        label=rational(exact.epsilon_label_bound),
        total=rational(exact.epsilon_total),
        labels=None if person is None else person.labels,
        person=tuple(spent),
        mechanism=stated.mechanism,
        protects="label" if stated.person is None else "person",
        group_rows=min((stated.tables[table].size for table in with_own_table), default=None),
        uses=tuple(artifact.table(table).usefulness for table in tables),
        numbers=are_numbers(artifact.label, artifact.tables[0])
        and not isinstance(artifact.label, JointDomain)
        and LOSSES[stated.utility.loss].needs_numbers,
        bias=artifact.bias_in_range,
        outputs=stated.outputs,
        warnings=tuple(relevant(artifact.shortcomings, stated.goal)) if with_use else (),
        certificate=stated,
        integers=artifact,
        artifact_path=path,
        data=data,
    )


def of_plan(plan: Plan, entries: Sequence[Entry], folder: Path, rules: GatePolicy) -> Subject:
    """The facts of a plan: what compile would do.

    ``entries`` are those of its spec's ledger, ``folder`` is where paths of the spec start. Where
    the ``rules`` allow a δ that is needed, ε of a person at this δ is found, too.
    """
    spec, budget, use = plan.spec, plan.budget, plan.use
    unit = spec.privacy.person
    labels = spec.privacy.labels_per_user if unit is None else unit.labels
    spent: tuple[Spending, ...] = ()
    if labels is not None:
        spent = ((Fraction(0), labels * budget.total),)
        if rules.max_epsilon_person is not None and spent[0][1] > Fraction(
            rules.max_epsilon_person
        ):
            spent += tuple(_composed(labels, budget, Fraction(rules.max_delta)))
    spends = None
    if budget.question is not None and not plan.recalls:
        data_set = getattr(spec.prior, "data_set", None) or str(budget.data)
        spends = data_set, budget.question.epsilon, datetime.now(UTC)
    return Subject(
        kind="plan",
        name=spec.name,
        label=budget.label,
        total=budget.total,
        labels=labels,
        person=spent,
        mechanism=spec.named_mechanism.kind,
        protects="label" if unit is None else "person",
        group_rows=None if budget.groups is None else budget.groups.smallest,
        uses=() if use is None else (use.figures,),
        numbers=not spec.has_classes and len(spec.label.names) == 1,
        settled=use is not None and use.settled,
        bias=None if use is None else use.bias,
        outputs=None if use is None else use.outputs,
        warnings=() if use is None else tuple(relevant(use.shortcomings, spec.goal)),
        entries=tuple(entries),
        spends=spends,
        ledger=spec.privacy.ledger,
        artifact_path=folder,
    )


def of_run(promise: dict[str, Any], run: Any, labels: int | None) -> Subject:
    """The facts of a training run, whose statement agrees with its config.

    ``promise`` is its ``privacy.json`` with exact numbers, ``run`` what the trainer read of it.
    """
    epsilon = None if promise["epsilon"] is None else Fraction(promise["epsilon"])
    delta = Fraction(promise["delta"] or 0)
    person = ((delta, epsilon),) if labels is not None and epsilon is not None else ()
    return Subject(
        kind="training run",
        name=str(run.name),
        label=epsilon,
        total=epsilon,
        labels=labels,
        person=person,
        delta=delta,
        mechanism=str(run.method),
        protects="label" if labels is None else "person",
    )


def _composed(labels: int, budget: EpsilonBudget, most: Fraction) -> list[Spending]:
    """(δ, ε) of a person at the largest known δ that is at most ``most``.

    It is that of the worst randomizer with this ε: no other one composes to more.
    """
    from labeldp_verify.claims import DELTAS  # noqa: PLC0415

    from labeldp_compile.composition import compose  # noqa: PLC0415  # dp_accounting
    from labeldp_compile.rounding.windows import randomized_response  # noqa: PLC0415

    delta = max((Fraction(one) for one in DELTAS if Fraction(one) <= most), default=None)
    if delta is None:
        return []
    worst = randomized_response((0, 1), range(2), budget.label)
    epsilon = compose([[worst]], [labels]).epsilon(Decimal(delta.numerator) / delta.denominator)
    return [] if epsilon is None else [(delta, Fraction(epsilon) + labels * budget.prior)]


def kind_of(path: Path) -> Kind:
    """The subject at a path, by its name and first bytes; a folder is a run if it looks like one.

    A pipe, a socket or a device is never opened.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return _kind_of_folder(path)
        if path.suffix.lower() == ".onnx":
            return "artifact"
        if path.suffix.lower() == ".ledger":
            return "ledger"
        if not stat.S_ISREG(mode):
            return "unknown"
        with path.open("rb") as file:
            begins = file.read(_AT + len(_LEDGER))
    except OSError:
        return "unknown"
    return "ledger" if begins.startswith(_SQLITE) and begins[_AT:] == _LEDGER else "unknown"


def _kind_of_folder(path: Path) -> Kind:
    if any((path / name).is_file() for name in RUN_FILES):
        return "training run"
    from labeldp_compile.tabular.provenance import MANIFEST  # noqa: PLC0415  # most are files

    return "folder of parts" if os.path.lexists(path / MANIFEST) else "unknown"


@dataclass
class FoundSubjects:
    """The subjects below some paths.

    Attributes:
        subjects: artifacts, run folders, ledgers and folders of parts; what was named itself is
            always one.
        refused: paths that cannot be checked, and why.
        others: how many further files there are, which no policy is about.
    """

    subjects: list[Path | str] = field(default_factory=list)
    refused: list[tuple[Path, str]] = field(default_factory=list)
    others: int = 0


def find_subjects(paths: list[str]) -> FoundSubjects:
    """All that is to be checked, in a fixed order.

    Raises InputError for a path that does not exist, for too many files, and if there is nothing
    to check: that is no pass.
    """
    below = FoundSubjects()
    for text in paths:
        path = Path(text)
        if is_url(text):
            below.subjects.append(text)
            continue
        if not os.path.lexists(path):
            raise InputError(f"{path}: there is no such file or folder")
        kind = kind_of(path)
        if not path.is_dir() or kind != "unknown":
            below.subjects.append(path)
        if path.is_dir() and kind in _WALKED:
            _below(path, below)
    below.subjects = list(dict.fromkeys(below.subjects))
    if not below.subjects and not below.refused:
        named = ", ".join(paths)
        what = "artifact, run folder, ledger or folder of parts"
        raise InputError(f"{named}: holds no {what}, so nothing is checked")
    return below


def _below(folder: Path, below: FoundSubjects) -> None:
    def unreadable(error: OSError) -> None:
        below.refused.append((Path(error.filename), f"cannot be read: {error.strerror}"))

    files, runs = 0, set[Path]()
    for at, folders, names in os.walk(folder, onerror=unreadable):
        here, inside = Path(at), []
        kind = kind_of(here)
        if kind == "training run" or here.parent in runs:
            runs.add(here)
        is_own = kind == "folder of parts" or here in runs  # files of what is checked already
        for name in sorted(folders):
            path = here / name
            if path.is_symlink():
                below.refused.append((path, "is a link to a folder, which check does not follow"))
                continue
            kind = kind_of(path)
            if kind != "unknown":
                below.subjects.append(path)
            if kind in _WALKED:
                inside.append(name)
        folders[:] = inside
        files += len(names)
        if files > MAX_FILES:
            raise InputError(f"{folder}: has more than {MAX_FILES:,} files: name a smaller folder")
        for path in map(here.joinpath, sorted(names)):
            kind = kind_of(path)
            if kind == "unknown":
                below.others += not is_own
            elif path.is_symlink():
                below.refused.append((path, "is a link, which check does not follow"))
            else:
                below.subjects.append(path)
