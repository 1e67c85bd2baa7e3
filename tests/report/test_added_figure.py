"""A field of the report takes one line: that of CONTRIBUTING.md, in a copy of the package."""

import json

from tests.fixtures.copies import ROOT, apply, copied, diffs


def test_every_form_shows_it(tmp_path):
    labeldp = copied(tmp_path, "labeldp_compile")
    (diff,) = diffs("Adding a field of the report")
    apply(diff, tmp_path / "labeldp_compile/report/facts.py")
    report = "report", str(ROOT / "tests/golden/plain/randomized-response.onnx")
    assert "largest label                        11 (proved)" in labeldp(*report, "--verbose")
    assert json.loads(labeldp(*report, "--json"))["largest_label"] == 11
    labeldp(*report, "-o", "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<th scope="row">largest label</th><td><data value="11">11</data>' in page
