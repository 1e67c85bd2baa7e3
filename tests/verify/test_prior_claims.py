"""Declared facts of a private prior that cannot be true are no facts: such a file is refused."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.decode import read_certificate, read_domain, read_form, read_groups, read_model

from labeldp_compile import compile_spec
from verifier.tests.files import rebuilt

OLD = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def private():
    return next(OLD.rglob("auto-private-prior.onnx")).read_bytes()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rows", -5),
        ("rows", 0),
        ("rows", 2**53),
        ("labels", 7),
        ("l1_sensitivity", 0),
        ("l1_sensitivity", -2),
        ("l1_sensitivity", 3),
        ("scale", 0.0),
        ("scale", -60.0),
        ("scale", 1.0),
    ],
)
def test_an_impossible_fact_does_not_verify(private, field, value):
    def change(certificate):
        assert certificate["prior"][field] != value
        certificate["prior"][field] = value

    report = check_bytes(rebuilt(private, change))
    failed = next(check for check in report.checks if not check.ok)
    assert failed.name == "claims" and "the prior" in failed.detail
    assert "DO NOT USE" in " ".join(report.in_words("x.onnx")).upper()


def test_possible_facts_stay_declared(private):
    def change(certificate):
        certificate["prior"].update(rows=1, scale=1e6)

    assert check_bytes(rebuilt(private, change)).ok


SPEC = """
version: 1
name: grouped
goal: labels
label: {column: y, domain: {kind: integer, min: 0, max: 9}}
loss: squared
privacy: {epsilon: 4.0}
prior: {kind: private, data: t.parquet}
groups: {column: region, values: [north, south]}
mechanism: {kind: rr_on_bins}
"""


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    place = tmp_path_factory.mktemp("grouped")
    north = np.arange(20_000) % 2 == 0
    labels = np.where(north, 1, 8)
    regions = np.where(north, "north", "south").tolist()
    pq.write_table(pa.table({"y": labels, "region": regions}), place / "t.parquet")
    (place / "g.yaml").write_text(SPEC)
    return compile_spec(place / "g.yaml").model


@pytest.mark.parametrize("pooled", [True, False])
def test_groups_state_possible_facts_of_each_table(grouped, pooled):
    assert check_bytes(grouped).ok

    def change(certificate):
        tables = certificate["groups"]["tables"]
        assert len(tables) == 3
        for one in [certificate, tables[-1]] if pooled else tables[:1]:
            one["prior"]["rows"] = -5

    proto = read_model(grouped)
    certificate = read_certificate(proto)
    domain = read_domain(certificate.label.domain)
    form = read_form(certificate.form, proto, grouped, domain, read_groups(certificate))
    stated = certificate.to_json()
    change(stated)
    report = check_bytes(form.rebuild(domain, stated))
    failed = next(check for check in report.checks if not check.ok)
    assert failed.detail == "the number of rows of the prior is out of range"
