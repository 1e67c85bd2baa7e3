"""The formats of ``labeldp check``: in none of them is a text of a file more than text."""

import json
import re
from urllib.parse import unquote

import pytest

from labeldp_compile.check.policy import GatePolicy, LoadedPolicy
from labeldp_compile.check.rules import PolicyFinding
from labeldp_compile.check.verdicts import FORMATS, CheckResult, Judged
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.hostile.test_terminal import EVIL
from tests.policy.company import labeldp, run, write

COMMANDS = (
    "::error file=x::forged",
    "##[error]forged",
    "x::warning::forged%0A::error::forged",
    "a,title=forged::b",
    "]]><failure/>",
    '"><failure message="forged"/><x a="',
    "</script>&amp;&#10;\ud800",
    EVIL,
)


def result_of(text, tmp_path):
    rules = GatePolicy(version=1, max_epsilon_label=1, max_epsilon_dataset=1)
    found = PolicyFinding("max_epsilon_label", False, "proved", text, text, text)
    met = PolicyFinding("verified", True, "proved", text)
    judged = [
        Judged(text, "artifact", (met, found), text),
        Judged(f"b/{text}", "artifact", (met,)),
    ]
    return CheckResult(LoadedPolicy(rules, tmp_path / text.replace("/", ""), "0" * 64), judged)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("text", COMMANDS)
def test_no_line_is_a_command_of_a_runner(name, text, tmp_path):
    lines = FORMATS[name](result_of(text, tmp_path))
    commands = [line for line in lines if line.lstrip().startswith("::")]
    if name == "github":
        error, skipped = commands
        assert skipped == "::notice::max_epsilon_dataset: no such file was checked"
        properties, message = re.fullmatch(
            r"::error (file=[^,:]*,title=[^,:]*)::(.*)", error
        ).groups()
        assert properties.count("=") - text.count("=") <= 2 and "\n" not in message
    else:
        assert not commands
    assert not any("##[" in line or set(line) & set("\n\r\x1b\u2028\x85\u202e") for line in lines)


@pytest.mark.parametrize("text", COMMANDS)
def test_documents_parse_and_hold_one_failure(text, tmp_path):
    result = result_of(text, tmp_path)
    whole = {name: "\n".join(FORMATS[name](result)) for name in FORMATS}
    assert whole["json"].isascii() and whole["sarif"].isascii()
    document = json.loads(whole["json"])
    assert [one["ok"] for one in document["files"]] == [False, True]
    assert document["not_applied"] == ["max_epsilon_dataset"] and not document["ok"]
    (run,) = json.loads(whole["sarif"])["runs"]
    (found,) = run["results"]
    rule = run["tool"]["driver"]["rules"][found["ruleIndex"]]
    assert rule["id"] == found["ruleId"] == "max_epsilon_label" and found["level"] == "error"
    uri = found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"[A-Za-z0-9%/._~-]*", uri)
    assert unquote(uri, errors="surrogatepass") == text
    assert whole["table"].endswith(
        "fall short of the policy " + whole["table"].split("policy ")[-1]
    )


def policy(folder, **keys):
    return write(folder / "policy.yaml", {"version": 1, **keys})


@pytest.mark.parametrize("paths", [["empty"], ["nowhere"], ["empty", "empty"]])
def test_nothing_to_check_is_no_pass(paths, here):
    policy(here, max_epsilon_label=1)
    (here / "empty" / "more").mkdir(parents=True)
    (here / "empty" / "README.md").write_text("x")
    result = labeldp("check", *paths, "--policy", "policy.yaml", where=here)
    assert result.exit_code == 2 and not result.stdout


def test_what_was_named_is_checked_whatever_it_is(here):
    policy(here, max_epsilon_label=1)
    (here / "x.bin").write_text("x")
    result = labeldp("check", "x.bin", "--policy", "policy.yaml", where=here)
    assert result.exit_code == 1 and "is no artifact, run folder, ledger or" in result.stdout


def test_an_artifact_in_a_run_folder_is_checked_too(here):
    """A few files must not turn a folder of artifacts into one whose artifacts nobody checks."""
    policy(here, max_epsilon_label=0.6, max_delta=0.001)
    path, words = run(here), ("check", "runs", "runs/run", "--policy", "policy.yaml")
    (path / "representation").mkdir()
    (path / "representation" / "kept.bin").write_text("x")
    met = labeldp(*words, where=here)
    assert met.exit_code == 0 and "1 file meets" in met.stdout and "not checked" not in met.stdout
    for folder in (path, path / "representation"):
        (folder / "large.onnx").write_bytes(compile_text(INTEGER_SPEC).model)
        result = labeldp(*words, where=here)
        assert result.exit_code == 1 and "large.onnx: 1 of 2 rules met" in result.stdout
        (folder / "large.onnx").unlink()


def test_a_huge_file_and_too_much_work_are_no_pass(here):
    policy(here, max_epsilon_label=1)
    with (here / "huge.onnx").open("wb") as file:
        file.truncate(2**40)  # as sparse as it may be
    result = labeldp("check", ".", "--policy", "policy.yaml", where=here)
    assert result.exit_code == 1 and "huge.onnx" in result.stdout
