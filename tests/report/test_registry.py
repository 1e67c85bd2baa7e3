"""``report --registry``: the registry's schema accepts it, and it promises no more than is so."""

import dataclasses
import re
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from labeldp_verify import VerificationError, check_file
from labeldp_verify.claims import rational

from labeldp_compile.cli import main
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


def labeldp(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


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


def test_the_schema_refuses_what_is_not_filled_in_at_all():
    """So that the test above can fail: each required field, removed."""
    from jsonschema import ValidationError

    text = registry_entry(check_file(OLD / FILES[0]), DAY)
    for field in SCHEMA["properties"]["deployment"]["properties"]["basic"]["required"]:
        entry = require_valid(text)
        del entry["deployment"]["basic"][field]
        with pytest.raises(ValidationError):
            require_valid(yaml.safe_dump(entry, default_style='"'))


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


def test_the_command_writes_it_alone_or_beside_a_page(tmp_path):
    file, out, page = OLD / FILES[1], tmp_path / "entry.yaml", tmp_path / "page.html"
    result = labeldp("report", file, "--registry", out, "--published", "2026-01-31")
    assert result.exit_code == 0 and result.stdout == f"{out}\n"
    entry = require_valid(out.read_text("utf-8"))
    assert entry["deployment"]["basic"]["name"] == "randomized-response"
    assert entry["url_slug"].startswith("randomized-response-todo-")
    before = out.read_bytes()
    result = labeldp("report", file, "--registry", out, "--published", "2025-01-01")
    assert result.exit_code == 2 and "exists already" in result.stderr
    assert out.read_bytes() == before
    both = ["--registry", out, "--published", "2026-01-31", "-o", page, "--overwrite"]
    assert labeldp("report", file, *both).exit_code == 0
    assert out.read_bytes() == before and "<style>" in page.read_text("utf-8")


def test_of_a_file_that_fails_nothing_is_written(tmp_path):
    data = bytearray((OLD / FILES[1]).read_bytes())
    data[-1] ^= 1
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(data)
    with pytest.raises(VerificationError):
        registry_entry(check_file(damaged), DAY)
    out = tmp_path / "entry.yaml"
    result = labeldp("report", damaged, "--registry", out, "--published", "2026-01-31")
    assert result.exit_code == 1 and "DOES NOT VERIFY" in result.stderr
    assert not out.exists() and result.stdout == ""


def test_a_spec_is_not_replaced(tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_bytes((OLD / "plain/randomized-response.yaml").read_bytes())
    more = ["--published", "2026-01-31", "--spec", spec, "--overwrite"]
    result = labeldp("report", OLD / FILES[1], "--registry", spec, *more)
    assert result.exit_code == 2 and "is the input" in result.stderr
    assert spec.read_bytes() == (OLD / "plain/randomized-response.yaml").read_bytes()
