"""The report as one HTML page that needs nothing else."""

from __future__ import annotations

from labeldp_verify.printable import printable

from labeldp_compile.inspection import Decoded
from labeldp_compile.page.document import html_document
from labeldp_compile.page.svg import picture_settings
from labeldp_compile.report.comparison import compare
from labeldp_compile.report.findings import Findings
from labeldp_compile.report.markup import section, text
from labeldp_compile.report.posterior import posteriors
from labeldp_compile.report.sections.checks import checks, verdict
from labeldp_compile.report.sections.comparison import comparison
from labeldp_compile.report.sections.composition import composition
from labeldp_compile.report.sections.matrix import matrix
from labeldp_compile.report.sections.moments import moments
from labeldp_compile.report.sections.posterior import SCRIPT, posterior
from labeldp_compile.report.sections.prior import prior
from labeldp_compile.report.sections.spec import spec
from labeldp_compile.report.sections.summary import summary


def report_page(findings: Findings) -> str:
    """The page; of a file that does not verify it holds the checks and nothing else."""
    decoded = findings.decoded
    if decoded is None:
        title = f"{printable(findings.file)}: does not verify"
        lines = [f"<h1>{text(findings.file)}</h1>", *verdict(findings)]
        return html_document(title, [*lines, *section("checks", "Checks", checks(findings))])
    named = decoded.certificate["name"]
    head = [
        f"<header><h1>Privacy report: {text(named)}</h1>",
        f'<p class="soft">of the file <code>{text(findings.file)}</code></p>',
        *verdict(findings),
        "</header><main>",
    ]
    script = SCRIPT.read_text(encoding="utf-8")
    with picture_settings():
        body = [*head, *_sections(findings, decoded), "</main>"]
    return html_document(f"Privacy report: {printable(named)}", body, script)


def _sections(findings: Findings, decoded: Decoded) -> list[str]:
    beliefs = posteriors(decoded)
    return [
        *section("summary", "In plain words", summary(decoded)),
        *section("checks", "What was checked", checks(findings)),
        *section("matrix", "From labels to outputs", matrix(decoded)),
        *section("moments", "What happens to each label", moments(decoded)),
        *section("prior", "The prior", prior(decoded, beliefs)),
        *section("posterior", "What one output tells", posterior(decoded, beliefs)),
        *section("loss", "How good it is", comparison(decoded, compare(decoded))),
        *section("composition", "Several labels of one person", composition(decoded)),
        *section("spec", "The spec as compiled", spec(findings)),
    ]
