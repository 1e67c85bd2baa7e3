"""``report --registry``: the registry's schema accepts it, and it promises no more than is so."""

import dataclasses
import re
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from labeldp_verify import check_file
from labeldp_verify.claims import rational

from labeldp_compile.report.registry import registry_entry

TESTS = Path(__file__).parents[1]
SCHEMA = yaml.safe_load((TESTS / "published/deployments-schema.yaml").read_text("utf-8"))
OLD = TESTS / "golden"
DAY = date(2026, 1, 31)
FILES = [
    "plain/auto-private-prior.onnx",
    "plain/randomized-response.onnx",
    "plain/laplace-real-unbiased.onnx",
    "plain/users-window.onnx",
    "groups/bands.onnx",
    "joint/prior.onnx",
    "sets/design.onnx",
]


def require_valid(text):
    """As the registry checks it: the schema, with formats, and how texts are quoted."""
    import jsonschema  # takes seconds

    entry = yaml.safe_load(text)
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    checker = jsonschema.Draft7Validator.FORMAT_CHECKER
    jsonschema.Draft7Validator(SCHEMA, format_checker=checker).validate(entry)
    for token in yaml.scan(text):
        assert getattr(token, "style", None) in (None, "|", '"', "'")
    return entry


@pytest.mark.parametrize("file", FILES)
def test_entries_are_valid_and_state_what_the_file_proves(file):
    report = check_file(OLD / file)
    certificate = report.certificate
    entry = require_valid(registry_entry(report, DAY))
    deployment = entry["deployment"]
    assert entry["status"] == "Draft" and deployment["basic"]["publication_date"] == "2026-01-31"
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    exact, loss = certificate.exact, deployment["privacy_loss"]
    assert loss["privacy_unit"] == "One label" and "substitution" in loss["privacy_unit_details"]
    spent = rational(exact.epsilon_label_bound) + rational(exact.epsilon_prior)
    stated = Fraction(loss["privacy_parameters"]["epsilon"])
    assert spent <= stated <= spent * (1 + Fraction(1, 10**12))
    assert report.sha256 in deployment["implementation"]["mechanisms"]
    proved, declared = loss["privacy_parameters_details"].split("integers of the randomizer.")
    (bound,) = re.findall(r"ε ≤ ([0-9.]+), proved", proved)
    assert 0 <= Fraction(bound) - rational(exact.epsilon_label_bound) <= Fraction(1, 10**6)
    assert "(declared)" in declared and "proved" not in declared
    assert declared.startswith(" Each compile") == (rational(exact.epsilon_prior) > 0)


def test_people_with_several_labels():
    report = check_file(OLD / "plain/users-window.onnx")
    entry = require_valid(registry_entry(report, DAY))
    labels = report.certificate.composition.labels_per_user
    pays = labels * rational(report.certificate.exact.epsilon_label_bound)
    said = entry["deployment"]["accounting"]["composition"]
    (most,) = re.findall(r"at most ε = ([0-9.]+)\.$", said)
    assert f"with {labels} labels (declared)" in said
    assert 0 <= Fraction(most) - pays <= Fraction(1, 10**6)


@pytest.mark.parametrize(
    "name",
    ["<b>x</b>", "[x](https://x.y)", "`x`", "\\(x\\)", '"\n# x: "', "\x1b[2J", "$x$", "www.x.y"],
)
def test_names_of_others_are_no_markdown_and_no_yaml(name):
    report = check_file(OLD / FILES[0])
    claims = dataclasses.replace(
        report.certificate,
        name=name,
        mechanism=name,
        label=dataclasses.replace(report.certificate.label, column=name),
    )
    entry = require_valid(registry_entry(dataclasses.replace(report, certificate=claims), DAY))
    shown = entry["deployment"]["basic"]["name"]
    assert re.fullmatch(r"[\w \N{REPLACEMENT CHARACTER}-]+", shown)
    plain = require_valid(registry_entry(report, DAY))["deployment"]
    for part, field in [("implementation", "mechanisms"), ("dp_variant", "data_domain")]:
        expected, said = plain[part][field], entry["deployment"][part][field]
        for word in ("optimal_unbiased", "mdvis"):
            expected = expected.replace(word, shown)
        assert said == expected
