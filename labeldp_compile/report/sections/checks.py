"""What was verified, check by check."""

from __future__ import annotations

from labeldp_compile.report.findings import Findings
from labeldp_compile.report.markup import details, table, text


def verdict(findings: Findings) -> list[str]:
    """One line under the title, impossible to overlook."""
    if findings.report.ok:
        count = len(findings.report.checks)
        return [f'<p class="verdict good">Verified: all {count} checks hold.</p>']
    failed = next(check for check in findings.report.checks if not check.ok)
    return [
        '<div class="verdict bad" role="alert"><p><strong>DOES NOT VERIFY. Do not use this file.'
        "</strong></p>",
        f"<p>The check “{text(failed.name)}” failed: {text(failed.detail)}.</p>",
        "<p>Nothing that the file says of itself can be believed, so no number and no picture of "
        "it is shown here.</p></div>",
    ]


def checks(findings: Findings) -> list[str]:
    """Every check that was performed, with what it found."""
    report = findings.report
    rows = [
        (
            text(check.name),
            '<span class="good">✓ holds</span>'
            if check.ok
            else '<span class="bad">✗ FAILED</span>',
            text(check.detail),
        )
        for check in report.checks
    ]
    lines = table("Checks, in the order performed", ["check", "result", "finding"], rows, left=True)
    if not report.ok:
        return [
            *lines,
            "<p>Later checks rely on the one that failed, and were not performed.</p>",
        ]
    stated = report.to_json()
    return [
        "<p>Re-derived from the file alone, in exact arithmetic, by <code>labeldp verify</code> "
        "when this page was made. To repeat it, run that command on the file; this page proves "
        "nothing.</p>",
        *lines,
        *details(
            "What the file proves, and what it only declares",
            [
                f"<p><b>Proved</b>, given the prior: {_fields(stated['proved'])}.</p>",
                "<p><b>Only declared</b> (somebody’s word, which a signature can bind to them): "
                f"{_fields(stated['declared'])}.</p>",
            ],
        ),
    ]


def _fields(names: list[str]) -> str:
    return ", ".join(f"<code>{text(name)}</code>" for name in names)
