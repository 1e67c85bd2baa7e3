"""A claim takes one file: that of CONTRIBUTING.md, in a copy of the package."""

import re

from tests.fixtures.copies import ROOT, copied
from tests.fixtures.specs import spec

ALTERED = """
import sys
from pathlib import Path
from labeldp_verify import check_bytes
from labeldp_verify.claims import parse_certificate
from labeldp_verify.decode import read_certificate, read_model
from labeldp_verify.graph import write_model

data = Path("build/added.onnx").read_bytes()
report = check_bytes(data).require()
stated = report.certificate.to_json()
print(stated["format_version"], stated["likeliest"], stated["fields"]["proved"][-1])
label, lookup = report.artifact.label, report.artifact.lookup


def refused(change):
    altered = parse_certificate(stated).to_json()
    change(altered)
    return check_bytes(write_model(label, lookup, altered)).checks[-1]


for change in (
    lambda c: c["likeliest"].update(tables=["1"]),
    lambda c: c["likeliest"].update(more=1),
    lambda c: c.pop("likeliest"),
    lambda c: c["fields"]["proved"].pop(),
    lambda c: c.update(format_version="1.4"),
):
    print(refused(change))
"""


def test_it_is_stated_checked_and_refused_where_it_is_altered(tmp_path):
    labeldp = copied(tmp_path, "verifier/labeldp_verify")
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (file,) = re.findall(r"^```python\n(\"\"\"How likely.*?)^```$", page, re.S | re.M)
    (tmp_path / "verifier/labeldp_verify/claims/likeliest.py").write_text(file, encoding="utf-8")
    (tmp_path / "added.yaml").write_text(
        spec(labels=5, name="added", epsilon=1.5, mechanism="randomized_response")
    )
    labeldp("compile", "added.yaml", "-o", "build")
    verified = labeldp("verify", "-v", "build/added.onnx")
    assert "likeliest.tables agree with the integers" in verified
    assert "optimality" in verified and ", likeliest.tables" in verified
    stated, *refused = labeldp(program=("-c", ALTERED)).splitlines()
    assert stated.startswith("1.0 {'tables': ['") and stated.endswith(" likeliest.tables")
    assert [re.findall(r"name='([a-z ]+)', ok=False", line) for line in refused] == [
        ["likeliest"],
        ["certificate"],
        ["claims"],
        ["claims"],
        ["certificate"],
    ]
