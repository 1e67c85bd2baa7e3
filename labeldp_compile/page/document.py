"""The HTML around the body of a page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from pathlib import Path

from labeldp_verify.printable import printable

from labeldp_compile.page.palette import css_variables

_STYLE = Path(__file__).with_name("page.css")


def html_document(title: str, body: Iterable[str], script: str | None = None) -> str:
    """The whole page; ``body`` is HTML, ``title`` plain text, ``script`` JavaScript of our own.

    The policy lets nothing be fetched and no script run but this one, named by its digest, so that
    text from an artifact stays text even if it were not escaped. What a browser would obey in plain
    text (controls, marks of direction) is shown as U+FFFD.
    """
    style = css_variables() + _STYLE.read_text(encoding="utf-8")
    allowed = "'none'" if script is None else f"'sha256-{_digest(script)}'"
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {allowed}; "
        "base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',  # or else a browser asks the server for one
            f"<title>{escape(printable(title))}</title>",
            f"<style>\n{style}</style>\n</head>\n<body>",
            *("\n".join(map(printable, part.split("\n"))) for part in body),
            *([] if script is None else [f"<script>{script}</script>"]),
            "</body>\n</html>",
            "",
        ]
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
