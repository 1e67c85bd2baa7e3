"""From a path to what a policy says about it. What cannot be verified does not meet any policy."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeldp_verify import DEFAULT_BUDGET, Budget, Report, check_bytes, read_artifact
from labeldp_verify.budget import naming
from labeldp_verify.claims import rational
from labeldp_verify.errors import readable
from labeldp_verify.rounded import at_most

from labeldp_compile.check.finding import VERIFIED, Judged, Kind, PolicyFinding
from labeldp_compile.check.model import LoadedPolicy
from labeldp_compile.check.rules import findings, needed_delta
from labeldp_compile.check.subject import Subject, of_artifact, of_plan, of_run
from labeldp_compile.errors import InputError
from labeldp_compile.ledger.book import read_entries
from labeldp_compile.ledger.entries import Entry
from labeldp_compile.ledger.place import place_name
from labeldp_compile.ledger_url import is_url
from labeldp_compile.tabular.parts_folder import MANIFEST, PartsFolder

if TYPE_CHECKING:
    from labeldp_compile.planning import Plan

RUN_FILES = ("run.json", "privacy.json")
_MOST_DIGITS = 400  # of a number in a statement, before or behind the point: float64 has fewer
_OF_RUNS = (*RUN_FILES, "config.yaml", "result.json", "metrics.jsonl")
_SQLITE = b"SQLite format 3\0"
_LEDGER = b"LDPL"  # the application's number in a header of SQLite
_AT = 68
_MAX_RUN_FILE = 64 * 1024 * 1024


def judge(where: Path | str, policy: LoadedPolicy, budget: Budget = DEFAULT_BUDGET) -> Judged:
    """What a policy says about an artifact, a run folder, a ledger or a folder of parts.

    ``where`` is a path, or the URL of a ledger. Nothing that is in a file raises an error: what
    cannot be read or verified has one finding, which says why. ``budget`` is for the verification
    of an artifact.
    """
    if isinstance(where, str) and is_url(where):
        return _judged("ledger", place_name(where), lambda: _ledger(where, policy))
    path = Path(where)
    kind = kind_of(path)
    if kind == "artifact":
        return _judged(kind, str(path), lambda: _artifact(path, policy, budget))
    looks = {"training run": _run, "ledger": _ledger, "folder of parts": _parts}
    if kind in looks:
        return _judged(kind, str(path), lambda: looks[kind](path, policy))
    return unverified("unknown", str(path), "is no artifact, run folder, ledger or folder of parts")


def judge_artifact(path: Path, data: bytes, report: Report, policy: LoadedPolicy) -> Judged:
    """The same for an artifact that was verified already: its bytes, and their report."""
    if report.artifact is None:
        failed = next((one for one in report.checks if not one.ok), None)
        reason = "it was not checked" if failed is None else f"{failed.name}: {failed.detail}"
        return unverified("artifact", str(path), f"does not verify: {reason}", report.sha256)
    artifact = report.artifact
    bound = rational(artifact.certificate.exact.epsilon_label_bound)
    text = f"every check holds; the file proves ε ≤ {at_most(bound)} per label"
    with_use = policy.rules.usefulness is not None
    subject = of_artifact(path, data, artifact, with_use=with_use)
    return _of(subject, str(path), policy, text, report.sha256)


def judge_plan(plan: Plan, path: Path, policy: LoadedPolicy, entries: list[Entry]) -> Judged:
    """The same for the plan of a spec, whose ledger, if it has one, holds the entries."""
    subject = of_plan(plan, entries, path.parent, policy.rules)
    return _of(subject, str(path), policy, "compile can do what the spec says")


def unverified(kind: Kind, path: str, reason: str, sha256: str = "") -> Judged:
    """What cannot be verified."""
    return Judged(path, kind, (PolicyFinding(VERIFIED, False, "proved", reason),), "", sha256)


def kind_of(path: Path) -> Kind:
    """What is at a path, by its name and its first bytes; a folder is a run if it looks like one.

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
    return "folder of parts" if os.path.lexists(path / MANIFEST) else "unknown"


def _judged(kind: Kind, path: str, look: Callable[[], Judged]) -> Judged:
    """What ``look`` finds; what it cannot read is a finding, too."""
    try:
        if not is_url(path) and kind not in ("training run", "folder of parts"):
            require_plain(Path(path))
        return look()
    except InputError as error:
        return unverified(kind, path, str(error))
    except (OSError, MemoryError, ValueError, KeyError, TypeError, OverflowError) as error:
        return unverified(kind, path, f"cannot be checked ({type(error).__name__})")


def require_plain(path: Path) -> None:
    """Raise InputError for what is no ordinary file: to open a pipe would wait for its writer."""
    with readable(path):
        mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise InputError(f"{path}: is no ordinary file")


def _of(subject: Subject, path: str, policy: LoadedPolicy, text: str, sha256: str = "") -> Judged:
    first = PolicyFinding(
        VERIFIED, True, "declared" if subject.kind != "artifact" else "proved", text
    )
    return Judged(
        path,
        subject.kind,
        (first, *_more(subject, policy), *findings(subject, policy)),
        subject.name,
        sha256,
    )


def _more(subject: Subject, policy: LoadedPolicy) -> Iterator[PolicyFinding]:
    """What every policy demands of a training run: that it is private, with an allowed δ."""
    if subject.kind == "training run":
        if subject.label is None:
            text = "it promises no privacy at all: it was trained on true labels"
            yield PolicyFinding("private", False, "declared", text)
        else:
            yield needed_delta(subject, policy)


def _artifact(path: Path, policy: LoadedPolicy, budget: Budget) -> Judged:
    data = read_artifact(path)
    with naming(path):
        return judge_artifact(path, data, check_bytes(data, budget=budget), policy)


def _ledger(where: Path | str, policy: LoadedPolicy) -> Judged:
    entries = read_entries(where)
    text = f"the chain of {len(entries):,} entries is whole, and no budget was exceeded"
    name = where if isinstance(where, Path) else place_name(where)
    return _of(Subject(kind="ledger", entries=tuple(entries)), str(name), policy, text)


def _parts(path: Path, policy: LoadedPolicy) -> Judged:
    """A folder of ``randomize --append``: its parts are those of its manifest, byte for byte."""
    require_plain(path / MANIFEST)
    folder = PartsFolder.read(path)
    if folder is None:
        raise InputError(f"{path / MANIFEST}: was removed while it was read")
    folder.require_whole()
    subject = Subject(kind="folder of parts", parts=tuple(folder.listed.values()))
    rows = sum(part.rows for part in folder.listed.values())
    text = f"{len(folder.listed):,} parts with {rows:,} rows are as its manifest lists them"
    return _of(subject, str(path), policy, text)


def read_run(path: Path) -> Any:
    """What the trainer reads of a run folder, whose statement must agree with its config.

    Raises InputError.
    """
    from labeldp_compile.extras import trainer_module  # noqa: PLC0415

    for name in _OF_RUNS:
        file = path / name
        if file.is_symlink() or (file.exists() and not file.is_file()):
            raise InputError(f"{file}: is no ordinary file")
        if file.exists() and file.stat().st_size > _MAX_RUN_FILE:
            raise InputError(f"{file}: is larger than {_MAX_RUN_FILE:,} bytes: it was not checked")
    found = trainer_module("outcomes.runs", "a look at training runs").find_runs([path])[0]
    if found.status == "damaged":
        raise InputError(found.reason)
    return found


def read_promise(path: Path, run: Any) -> tuple[bytes, dict[str, Any]]:
    """The statement of a run that was read: its bytes, and what it says with exact numbers.

    Raises InputError.
    """
    data = (path / "privacy.json").read_bytes()
    try:
        promise: dict[str, Any] = json.loads(data, parse_float=_exact)
    except (ValueError, RecursionError):
        raise InputError(f"{path}: a file is missing or damaged") from None
    read = (run.epsilon, run.delta)
    stated = (promise["epsilon"], promise["delta"] if run.epsilon is not None else None)
    if any(map(_differ, stated, read)):
        raise InputError(
            f"{path}: ε or δ changed while it was read, or has more digits than the program writes"
        )
    return data, promise


def _differ(stated: Any, read: float | None) -> bool:
    """Whether a number is another one than the float that was compared with the config."""
    if stated is None or read is None:
        return stated is not read
    return Fraction(stated) != Fraction(repr(read))


def _exact(text: str) -> Decimal:
    """A number of a statement. ValueError for one that takes long to compute with."""
    number = Decimal(text)
    if len(text) > _MOST_DIGITS or abs(number.adjusted()) > _MOST_DIGITS:
        raise ValueError("too many digits")
    return number


def _run(path: Path, policy: LoadedPolicy) -> Judged:
    """A run whose statement agrees with its config, as the trainer reads both."""
    from labeldp_compile.extras import trainer_module  # noqa: PLC0415

    found = read_run(path)
    folder = trainer_module("run", "check of training runs").RunFolder(path)
    labels = folder.config().config.examples_per_user
    _, promise = read_promise(path, found)
    text = "its statement agrees with its config; what it promises is declared"
    if (release := path / "release.npz").exists():
        text += f" (to prove it: labeldp train CONFIG --verify-release {release})"
    return _of(of_run(path, promise, found, labels), str(path), policy, text)
