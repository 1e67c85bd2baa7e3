"""When labels are mature is declared in the certificate, and earlier specs compile as before."""

import pytest
from labeldp_verify import check_bytes
from labeldp_verify.claims.certificate import Certificate
from labeldp_verify.graph import write_model

from labeldp_compile.errors import InputError
from labeldp_compile.spec.load import parse_spec
from labeldp_compile.spec_match import spec_disagreements
from tests.fixtures.compiled import INTEGER_SPEC, compile_text

RULE = "mature: {after: P30D, by: paid_at}\n"


@pytest.fixture(scope="module")
def report():
    return check_bytes(compile_text(INTEGER_SPEC + RULE).model).require()


def test_it_is_declared_in_format_1_9_and_nothing_else_changes(report):
    stated = report.certificate
    assert stated.format_version == "1.9" and "mature" not in {c.name for c in report.checks}
    assert {"mature.after", "mature.by"} <= set(stated.fields.declared)
    plain = check_bytes(compile_text(INTEGER_SPEC).model).require().certificate
    assert plain.format_version != "1.9" and plain.mature is None
    assert plain.digests.tables == stated.digests.tables


def test_the_spec_must_say_the_same(report):
    found = spec_disagreements((INTEGER_SPEC + RULE).encode(), report.certificate)
    assert len(found) == 1 and "the digest differs" in found[0]  # this one has no file
    for other in ("", RULE.replace("30", "31"), RULE.replace("paid", "sent")):
        found = spec_disagreements((INTEGER_SPEC + other).encode(), report.certificate)
        assert any("mature." in line for line in found)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["mature"].update(after="P1M"),
        lambda c: c["mature"].update(after=30),
        lambda c: c["mature"].update(by=""),
        lambda c: c["mature"].update(by=c["label"]["column"]),
        lambda c: c["mature"].update(more=1),
        lambda c: c.pop("mature"),
        lambda c: c["fields"]["declared"].pop(),
        lambda c: c.update(format_version="1.4"),
    ],
)
def test_an_altered_rule_does_not_verify(report, change):
    stated = Certificate.from_json(report.certificate.to_json()).to_json()
    change(stated)
    label, lookup = report.artifact.label, report.artifact.lookup
    assert not check_bytes(write_model(label, lookup, stated)).ok


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("mature: {after: P1M, by: t}", "mature.after: expected a duration such as P30D"),
        ("mature: {after: 30, by: t}", "mature.after"),
        ("mature: {after: P30D}", "mature.by: this key is missing"),
        ("mature: {after: P30D, by: Y}", "the label cannot decide when it is mature"),
        ("mature: {after: P30D, by: t, at: x}", "unknown key"),
    ],
)
def test_a_wrong_rule_is_one_clear_error(rule, words):
    with pytest.raises(InputError) as error:
        parse_spec(INTEGER_SPEC + rule, "spec.yaml")
    assert words in str(error.value)
