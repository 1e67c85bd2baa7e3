"""A bad spec gives one message with file, line, key, what was expected and the nearest name."""

import pytest

from labeldp_compile.errors import SpecError
from labeldp_compile.spec import load_spec, parse_spec

GOOD = """version: 1
name: doctor-visits
label:
  column: mdvis
  domain: {kind: integer, min: 0, max: 77}
  out_of_domain: clamp
loss: squared
privacy:
  epsilon: 1.0
  split: auto
prior:
  kind: private
  data: data/randhie.parquet
mechanism:
  kind: rr_on_bins
"""
INTEGER = "{kind: integer, min: 0, max: 77}"

CASES = [
    # (text replaced, replacement, line, key, rest of the message)
    ("max: 77", "mx: 77", 5, "label.domain.mx", "unknown key; did you mean 'max'?"),
    ("mechanism:", "zzz: 1\nmechanism:", 14, "zzz", "expected one of goal, groups, label,"),
    ("kind: integer", "kind: integr", 5, "label.domain.kind", "did you mean 'integer'?"),
    ("{kind: integer,", "{", 5, "label.domain", "the key 'kind' is missing"),
    ("loss: squared", "loss: sqared", 7, "loss", "did you mean 'squared'?"),
    ("kind: rr_on_bins", "kind: rr_on_bin", 15, "mechanism.kind", "did you mean 'rr_on_bins'?"),
    ("version: 1", "version: 2", 1, "version", "2 is not one of 1"),
    ("mechanism:\n  kind: rr_on_bins\n", "", 1, "mechanism", "as in mechanism: {kind: random"),
    ("epsilon: 1.0", "epsilon: 0", 9, "privacy.epsilon", "must be at least 0.000001"),
    ("epsilon: 1.0", "epsilon: .nan", 9, "privacy.epsilon", "finite number"),
    ("epsilon: 1.0", "epsilon: one", 9, "privacy.epsilon", "expected a number"),
    ("max: 77", "max: -3", 5, "label.domain", "min = 0 is above max = -3"),
    ("max: 77", "max: 2000000", 5, "label.domain", "at most 1,000,000 labels"),
    ("name: doctor-visits", "name: ../x", 2, "name", "expected letters, digits"),
    ("clamp", "clmp", 6, "label.out_of_domain", "did you mean 'clamp'?"),
    ("clamp", "{default: 99}", 3, "label", "the default 99 is outside the domain"),
    ("clamp", "{default: 1.5}", 3, "label", "must be an integer"),
    ("split: auto", "split: {prior: 0.1, label: 0.8}", 8, "privacy", "is 0.9, not epsilon = 1.0"),
    ("split: auto", "split: {prior: 0, label: 1}", 10, "privacy.split.prior", "needs a part of ε"),
    ("kind: private\n  data: data/randhie.parquet", "kind: public", 11, "prior", "weights or data"),
    (
        "kind: private\n  data: data/randhie.parquet",
        "kind: public\n  weights: [1, 2]",
        13,
        "prior.weights",
        "expected 78 weights",
    ),
    ("loss: squared", "loss: zero_one", 15, "mechanism.kind", "grows with the distance"),
    (INTEGER, "{kind: categorical, values: [a, b, a]}", 5, "label.domain", "'a' is listed twice"),
    (INTEGER, "{kind: categorical, values: [1, b]}", 5, "label.domain", "all text or all integers"),
    (
        INTEGER,
        "{kind: categorical, values: [true, b]}",
        5,
        "label.domain.values.0",
        "put it in quotes",
    ),
    (INTEGER, "{kind: categorical, values: [a, b]}", 3, "label", "write out_of_domain: {default"),
    (INTEGER, "{kind: real, min: 0, max: 1e999, points: 9}", 5, "label.domain.max", "1e100"),
    (
        INTEGER,
        "{kind: real, min: 1e16, max: 10000000000000002, points: 900}",
        5,
        "label.domain",
        "too close",
    ),
]


@pytest.mark.parametrize(("old", "new", "line", "key", "rest"), CASES)
def test_messages(old, new, line, key, rest):
    assert old in GOOD
    with pytest.raises(SpecError) as caught:
        parse_spec(GOOD.replace(old, new), "s.yaml")
    message = str(caught.value)
    assert message.startswith(f"s.yaml:{line}: {key}: "), message
    assert rest in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("", "1: the file is empty"),
        ("- a", "1: expected a mapping"),
        ("a: [", "not valid YAML"),
        ("a: 1\na: 2", "2: the key 'a' is given twice"),
        ("a: !!python/object:os.system x", "1: the tag"),
        ("1: 2", "1: the key 1 must be text"),
        ("? [a]\n: 1", "a key must be text"),
        ("a: \x00", "not valid YAML"),
        ("a: &x [*x]", "not valid YAML"),
    ],
)
def test_no_spec_at_all(text, rest):
    with pytest.raises(SpecError, match=r"s\.yaml") as caught:
        parse_spec(text, "s.yaml")
    assert rest in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(SpecError, match="cannot be read"):
        load_spec(tmp_path / "missing.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9")
    with pytest.raises(SpecError, match="UTF-8"):
        load_spec(tmp_path / "latin.yaml")


def test_numbers_stay_the_decimals_that_were_written():
    text = GOOD.replace("epsilon: 1.0", "epsilon: 0.3").replace(
        "split: auto", "split: {prior: 0.1, label: 2e-1}"
    )
    spec = parse_spec(text)
    assert str(spec.privacy.epsilon) == "0.3"
    assert spec.privacy.split.prior + spec.privacy.split.label == spec.privacy.epsilon


def test_only_true_and_false_are_booleans():
    text = GOOD.replace(INTEGER, "{kind: categorical, values: [yes, no, on]}")
    text = text.replace("out_of_domain: clamp", "out_of_domain: {default: no}")
    text = text.replace("squared", "zero_one").replace("rr_on_bins", "randomized_response")
    assert parse_spec(text).label.to_domain().values == ("yes", "no", "on")
