"""From a path to what a policy says about it. What cannot be verified does not meet any policy.

The result is written as a table, JSON, SARIF or annotations of GitHub. Names and texts of files
were written by strangers. They are printable already; here each is escaped for its format. Runners
read commands from the lines of a log (``::error::``, ``##[command]``), so no line begins with a
text of a file, and ``##[`` occurs in none.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from labeldp_verify import DEFAULT_BUDGET, Budget, Report, check_bytes, read_artifact
from labeldp_verify.budget import naming
from labeldp_verify.claims import rational
from labeldp_verify.errors import readable
from labeldp_verify.printable import Marked, at_most, json_text, one_line

from labeldp_compile.check.policy import LoadedPolicy
from labeldp_compile.check.rules import PolicyFinding, findings, not_applied
from labeldp_compile.check.subject import (
    RUN_FILES,
    Kind,
    Subject,
    Worth,
    kind_of,
    of_artifact,
    of_plan,
    of_run,
)
from labeldp_compile.errors import InputError, trainer_module
from labeldp_compile.ledger_url import is_url

if TYPE_CHECKING:
    from labeldp_compile.build.plan import Plan
    from labeldp_compile.ledger.entries import Entry


_MOST_DIGITS = 400  # of a number in a statement, before or behind the point: float64 has fewer
_OF_RUNS = (*RUN_FILES, "config.yaml", "result.json", "metrics.jsonl")
_MAX_RUN_FILE = 64 * 1024 * 1024


@dataclass(frozen=True)
class Judged:
    """A file, and what a policy says about it.

    Attributes:
        path: as it was named, or found.
        kind: what it is.
        name: of the spec, the run or the data sets; empty if it is not known.
        sha256: of an artifact; else empty.
        findings: at least one.
    """

    path: str
    kind: Kind
    findings: tuple[PolicyFinding, ...]
    name: str = ""
    sha256: str = ""

    @property
    def failed(self) -> tuple[PolicyFinding, ...]:
        """The rules that it does not meet."""
        return tuple(one for one in self.findings if not one.ok)

    @property
    def ok(self) -> bool:
        """Whether something was checked, and all of it is met."""
        return bool(self.findings) and not self.failed

    def to_json(self) -> dict[str, Any]:
        """``{path, kind, name, sha256, ok, findings: [{rule, ok, worth, text, found, limit}]}``."""
        return {
            "path": one_line(self.path),
            "kind": self.kind,
            "name": one_line(self.name),
            "sha256": self.sha256,
            "ok": self.ok,
            "findings": [asdict(one) for one in self.findings],
        }


def judge(where: Path | str, policy: LoadedPolicy, budget: Budget = DEFAULT_BUDGET) -> Judged:
    """The verdicts of a policy on an artifact, a run folder, a ledger or a folder of parts.

    ``where`` is a path, or the URL of a ledger. Nothing that is in a file raises an error: what
    cannot be read or verified has one finding, which says why. ``budget`` is for the verification
    of an artifact.
    """
    kind: Kind = "ledger"
    if is_url(name := str(where)):
        from labeldp_compile.ledger.store import ledger_name  # noqa: PLC0415

        shown = ledger_name(name)
    else:
        kind, shown = kind_of(Path(name)), name
    try:
        return _LOOKS[kind](name, policy, budget)
    except InputError as error:
        return unverified(kind, shown, str(error))
    except (OSError, MemoryError, ValueError, KeyError, TypeError, OverflowError) as error:
        return unverified(kind, shown, f"cannot be checked ({type(error).__name__})")


def judge_artifact(path: Path, data: bytes, report: Report, policy: LoadedPolicy) -> Judged:
    """The verdicts of a policy on an artifact with these bytes, verified with this report."""
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


def judge_plan(plan: Plan, path: Path, policy: LoadedPolicy, entries: Sequence[Entry]) -> Judged:
    """The verdicts of a policy on a spec's plan; ``entries`` are those of its ledger, if any."""
    subject = of_plan(plan, entries, path.parent, policy.rules)
    return _of(subject, str(path), policy, "compile can do what the spec says")


def unverified(kind: Kind, path: str, reason: str, sha256: str = "") -> Judged:
    """The verdict on a subject that cannot be verified."""
    return Judged(path, kind, (PolicyFinding("verified", False, "proved", reason),), "", sha256)


def require_plain(path: Path) -> None:
    """Raise InputError for what is no ordinary file: to open a pipe would wait for its writer."""
    with readable(path):
        mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise InputError(f"{path}: is no ordinary file")


def _of(subject: Subject, path: str, policy: LoadedPolicy, text: str, sha256: str = "") -> Judged:
    worth: Worth = "proved" if subject.kind == "artifact" else "declared"
    verified = PolicyFinding("verified", True, worth, text)
    every = (verified, *findings(subject, policy))
    return Judged(path, subject.kind, every, subject.name, sha256)


def _artifact(name: str, policy: LoadedPolicy, budget: Budget) -> Judged:
    path = Path(name)
    require_plain(path)
    data = read_artifact(path)
    with naming(path):
        return judge_artifact(path, data, check_bytes(data, budget=budget), policy)


def _ledger(name: str, policy: LoadedPolicy, _: Budget) -> Judged:
    from labeldp_compile.ledger.book import read_entries  # noqa: PLC0415  # most files are none
    from labeldp_compile.ledger.store import ledger_name  # noqa: PLC0415

    if not is_url(name):
        require_plain(Path(name))
    entries = read_entries(name)
    text = f"the chain of {len(entries):,} entries is whole, and no budget was exceeded"
    shown = ledger_name(name)
    return _of(Subject(kind="ledger", entries=tuple(entries)), shown, policy, text)


def _parts(name: str, policy: LoadedPolicy, _: Budget) -> Judged:
    """A folder of ``randomize --append``: its parts are those of its manifest, byte for byte."""
    from labeldp_compile.tabular.provenance import MANIFEST, PartsFolder  # noqa: PLC0415

    manifest = Path(name) / MANIFEST
    require_plain(manifest)
    folder = PartsFolder.read(Path(name))
    if folder is None:
        raise InputError(f"{manifest}: was removed while it was read")
    folder.require_whole()
    rows = sum(part.rows for part in folder.listed.values())
    text = f"{len(folder.listed):,} parts with {rows:,} rows are as its manifest lists them"
    return _of(Subject(kind="folder of parts"), name, policy, text)


def _run(name: str, policy: LoadedPolicy, _budget: Budget) -> Judged:
    """A run whose statement agrees with its config, as the trainer reads both."""
    path = Path(name)
    run = read_run(path)
    folder = trainer_module("run", "check of training runs").RunFolder(path)
    labels = folder.config().config.examples_per_user
    _, promise = read_promise(path, run)
    text = "its statement agrees with its config; what it promises is declared"
    if (release := path / "release.npz").exists():
        text += f" (to prove it: labeldp train CONFIG --verify-release {release})"
    return _of(of_run(promise, run, labels), name, policy, text)


def _unknown(name: str, _: LoadedPolicy, _budget: Budget) -> Judged:
    raise InputError("is no artifact, run folder, ledger or folder of parts")


_LOOKS: dict[Kind, Callable[[str, LoadedPolicy, Budget], Judged]] = {
    "artifact": _artifact,
    "ledger": _ledger,
    "folder of parts": _parts,
    "training run": _run,
    "unknown": _unknown,
}


def read_run(path: Path) -> Any:
    """The facts that the trainer reads of a run folder, whose statement must agree with its config.

    Raises InputError.
    """
    for name in _OF_RUNS:
        file = path / name
        if file.is_symlink() or (file.exists() and not file.is_file()):
            raise InputError(f"{file}: is no ordinary file")
        if file.exists() and file.stat().st_size > _MAX_RUN_FILE:
            raise InputError(f"{file}: is larger than {_MAX_RUN_FILE:,} bytes: it was not checked")
    run = trainer_module("outcomes.runs", "a look at training runs").find_runs([path])[0]
    if run.status == "damaged":
        raise InputError(run.reason)
    return run


def read_promise(path: Path, run: Any) -> tuple[bytes, dict[str, Any]]:
    """The statement of a run that was read: its bytes, and what it says with exact numbers.

    Raises InputError.
    """
    data = (path / "privacy.json").read_bytes()
    try:
        promise: dict[str, Any] = json.loads(data, parse_float=_exact)
    except (ValueError, RecursionError):
        raise InputError(f"{path}: a file is missing or damaged") from None
    # What was compared with the config are the floats that the trainer read.
    stated = (promise["epsilon"], None if run.epsilon is None else promise["delta"])
    for number, read in zip(stated, (run.epsilon, run.delta), strict=True):
        known = None not in (number, read)
        if (number is not read) if not known else Fraction(number) != Fraction(repr(read)):
            raise InputError(
                f"{path}: ε or δ changed while it was read, or has more digits than the program "
                "writes"
            )
    return data, promise


def _exact(text: str) -> Decimal:
    """A number of a statement. ValueError for one that takes long to compute with."""
    number = Decimal(text)
    if len(text) > _MOST_DIGITS or abs(number.adjusted()) > _MOST_DIGITS:
        raise ValueError("too many digits")
    return number


FORMAT_VERSION = "1.0"
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class CheckResult:
    """All files that were checked against one policy.

    Attributes:
        policy: what was demanded.
        judged: what it says about each file.
        others: how many files no policy is about.
        verbose: whether the table has a line for each rule, met or not.
    """

    policy: LoadedPolicy
    judged: Sequence[Judged]
    others: int = 0
    verbose: bool = False

    @property
    def ok(self) -> bool:
        """Whether something was checked, and every file meets the policy."""
        return bool(self.judged) and all(one.ok for one in self.judged)

    @property
    def not_applied(self) -> list[str]:
        """Keys of the policy that are about none of the files."""
        return not_applied(self.policy, {one.kind for one in self.judged})

    def verdict(self) -> str:
        """The last line."""
        met, count = sum(one.ok for one in self.judged), len(self.judged)
        if self.ok:
            files = "1 file meets" if count == 1 else f"all {count:,} files meet"
            return f"{files} the policy {one_line(str(self.policy.path))}"
        short = f"{count - met:,} of {count:,} files"
        return f"NOT MET: {short} fall short of the policy {one_line(str(self.policy.path))}"


def _table(result: CheckResult) -> list[str]:
    lines = []
    for one in result.judged:
        count = len(one.findings)
        head = f"{one.kind} {_shown(one.path)}: {count - len(one.failed)} of {count} rules met"
        lines.append(Marked(f"ok      {head}", "ok") if one.ok else f"failed  {head}")
        for finding in one.findings if result.verbose else one.failed:
            mark = "ok    " if finding.ok else "FAILED"
            line = f"  {mark}  {finding.rule:<21} {_safe(finding.text)}"
            lines.append(line if finding.ok else Marked(line, "failed"))
    lines += [f"not applied: {key} (no such file was checked)" for key in result.not_applied]
    if result.others:
        lines.append(f"not checked: {result.others:,} other files")
    lines.append(Marked(_safe(result.verdict()), "ok" if result.ok else "failed"))
    return lines


def _document(result: CheckResult) -> list[str]:
    policy = result.policy
    document = {
        "format_version": FORMAT_VERSION,
        "ok": result.ok,
        "policy": {
            "path": _shown(str(policy.path)),
            "sha256": policy.sha256,
            "name": policy.rules.name,
        },
        "files": [one.to_json() for one in result.judged],
        "not_applied": result.not_applied,
        "other_files": result.others,
    }
    return _json_lines(document)


def _sarif(result: CheckResult) -> list[str]:
    keys = list(dict.fromkeys(f.rule for one in result.judged for f in one.findings))
    run = {
        "tool": {
            "driver": {
                "name": "labeldp check",
                "rules": [
                    {"id": key, "shortDescription": {"text": f"the policy's {key}"}} for key in keys
                ],
            }
        },
        "results": [
            _sarif_result(one, finding, keys.index(finding.rule))
            for one in result.judged
            for finding in one.failed
        ],
    }
    return _json_lines({"$schema": _SARIF, "version": "2.1.0", "runs": [run]})


def _sarif_result(one: Judged, finding: PolicyFinding, rule: int) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": _uri(one.path)}, "region": {"startLine": 1}}
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": "error",
        "message": {"text": finding.text},
        "locations": [{"physicalLocation": place}],
    }


def _uri(path: str) -> str:
    """A path as a reference; an absolute one with its scheme."""
    scheme = "file://" if Path(path).is_absolute() else ""
    return scheme + quote(path.replace(os.sep, "/"), errors="surrogatepass")


def _github(result: CheckResult) -> list[str]:
    lines = []
    for one in result.judged:
        for finding in one.failed:
            title = f"labeldp check: {finding.rule}"
            place = f"file={_property(_shown(one.path))},title={_property(title)}"
            text = f"{one.kind} {_shown(one.path)}: {finding.text}"
            lines.append(f"::error {place}::{_data(text)}")
    lines += [
        f"::notice::{_data(f'{key}: no such file was checked')}" for key in result.not_applied
    ]
    return [*lines, _safe(f"labeldp check: {result.verdict()}")]


def _data(text: str) -> str:
    """The message of a workflow command."""
    return _safe(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _safe(text: str) -> str:
    """Without the older form of a workflow command, which a runner finds anywhere in a line."""
    return text.replace("##[", "# #[")


def _shown(path: str) -> str:
    return _safe(one_line(path))


def _json_lines(document: Any) -> list[str]:
    return json_text(document).replace("##[", "\\u0023#[").splitlines()


FORMATS: dict[str, Callable[[CheckResult], list[str]]] = {
    "table": _table,
    "json": _document,
    "sarif": _sarif,
    "github": _github,
}
