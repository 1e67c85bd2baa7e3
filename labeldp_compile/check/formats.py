"""The result of a check as a table, JSON, SARIF or annotations of GitHub.

Names and texts of files were written by strangers. They are printable already; here each is escaped
for its format. Runners read commands from the lines of a log (``::error::``, ``##[command]``), so
no line begins with a text of a file, and ``##[`` occurs in none.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from labeldp_verify.printable import Marked, json_text, one_line

from labeldp_compile.check.policy import LoadedPolicy
from labeldp_compile.check.rules import PolicyFinding, not_applied
from labeldp_compile.check.verdicts import Judged

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


def lines_of(result: CheckResult, name: str) -> list[str]:
    """The lines of a format."""
    return FORMATS[name](result)


def _table(result: CheckResult) -> list[str]:
    lines = []
    for one in result.judged:
        count = len(one.findings)
        head = f"{one.kind} {_shown(one.path)}: {count - len(one.failed)} of {count} rules met"
        lines.append(Marked(f"ok      {head}", "ok") if one.ok else f"failed  {head}")
        for finding in one.findings if result.verbose else one.failed:
            line = f"  {'ok    ' if finding.ok else 'FAILED'}  {finding.rule:<21} {finding.text}"
            lines.append(line if finding.ok else Marked(line, "failed"))
    lines += [f"not applied: {key} (no such file was checked)" for key in result.not_applied]
    if result.others:
        lines.append(f"not checked: {result.others:,} other files")
    lines.append(Marked(result.verdict(), "ok" if result.ok else "failed"))
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
    "table": lambda result: [_marked(line, _safe(line)) for line in _table(result)],
    "json": _document,
    "sarif": _sarif,
    "github": _github,
}


def _marked(line: str, text: str) -> str:
    return Marked(text, line.status) if isinstance(line, Marked) else text
