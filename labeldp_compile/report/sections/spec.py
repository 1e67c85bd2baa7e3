"""The spec as compiled: its text if it was given, and what the certificate says of it."""

from __future__ import annotations

import json
from typing import Any

from labeldp_verify.printable import clipped

from labeldp_compile.report.findings import Findings
from labeldp_compile.report.markup import table, text
from labeldp_compile.report.numbers import data

_COLUMNS = 400
_MOST_TEXT = 200_000


def spec(findings: Findings) -> list[str]:
    """What was asked for."""
    assert findings.decoded is not None
    certificate = findings.decoded.certificate
    digest = f"<code>{text(certificate['digests']['spec'])}</code>"
    if findings.spec is None:
        given = [
            f"<p>The file holds the SHA-256 of the spec, {digest}, and not its text. With "
            '<code class="whole">--spec SPEC</code> this page checks a spec against it, and shows '
            "it.</p>"
        ]
    else:
        shown = "\n".join(text(line) for line in findings.spec[:_MOST_TEXT].split("\n"))
        cut = "" if len(findings.spec) <= _MOST_TEXT else "<p>The rest is not shown.</p>"
        given = [
            f"<p>The spec that was given agrees with the certificate, which names its SHA-256, "
            f"{digest}.</p>",
            f"<pre>{shown}</pre>{cut}",
        ]
    return [
        *given,
        *table("What the certificate says", ["key", "value"], _rows(certificate), left=True),
    ]


def _rows(certificate: dict[str, Any]) -> list[list[str]]:
    domain = certificate["label"]["domain"]
    split = certificate["prior"].get("split")
    users = certificate.get("composition", {}).get("labels_per_user")
    rows = [
        ["name", text(certificate["name"])],
        ["label.column", text(certificate["label"]["column"])],
        *([f"label.{_place(key)}", _value(value)] for key, value in domain.items()),
        ["loss", text(certificate["utility"]["loss"])],
        ["privacy.epsilon", data(certificate["privacy"]["epsilon_total"], 9)],
        ["privacy.adjacency", text(certificate["privacy"]["adjacency"])],
        *([["privacy.split", text(split)]] if split else []),
        *([["privacy.labels_per_user", data(users, 9)]] if users else []),
        ["prior.kind", text(certificate["prior"]["kind"])],
        ["mechanism", text(certificate["mechanism"])],
    ]
    if certificate["auto"]:
        rows.append(["chosen automatically", text(certificate["auto"])])
    tools = ", ".join(f"{tool} {version}" for tool, version in sorted(certificate["tools"].items()))
    return [*rows, ["made with", text(tools)]]


def _place(key: str) -> str:
    return key if key == "out_of_domain" else f"domain.{key}"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return text(value)
    return text(clipped(json.dumps(value, ensure_ascii=False), _COLUMNS))
