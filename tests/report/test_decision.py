"""The first screen of a report: plain words for a person who must decide."""

import base64
import json
import math
import re
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from labeldp_compile.report.approval import Responsible, approval_path
from labeldp_compile.report.decision import BeliefBar, delta_in_words, of_run
from labeldp_compile.report.page import RunFindings, run_page
from tests.cli.test_cli import labeldp
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.report.conftest import SPECS
from tests.report.reading import Reader

MOST_WORDS = 120
PLAIN = re.compile(r"[\w\s.,:;()ε-]*")
POLICY = "version: 1\nname: company\nmax_epsilon_label: {most}\n"
WORDS = {
    "purpose": "Plan the number of doctors",
    "owner": "Health statistics",
    "recipients": "Two analysts",
    "retention": "Until the end of 2027",
    "by": "A. Officer",
}
FIELDS = [field.name for field in fields(Responsible)]


def first_screen(page):
    """What is read aloud: all text of the section, without the links beside it."""
    (section,) = re.findall(r'<section id="decision".*?</section>', page, re.DOTALL)
    return " ".join(Reader(section).sections["decision"].split())


def colour(page):
    (kind,) = re.findall(r'class="verdict (\w+)"', page)
    return kind


@pytest.mark.parametrize("name", [name for name in SPECS if name != "hostile"])
def test_it_has_at_most_120_words_and_no_symbol_but_epsilon(pages, name):
    said = first_screen(pages(name))
    assert PLAIN.fullmatch(said), re.sub(PLAIN, "", said)
    assert len(said.split()) <= MOST_WORDS
    for question in ("Whose data", "Protected from", "How much", "Not protected", "Who says so"):
        assert question in said


@pytest.mark.parametrize("epsilon", ["1e-6", "0.3", "1", "4", "60"])
def test_a_belief_is_never_below_what_bayes_allows(epsilon):
    factor = math.exp(float(epsilon))
    after = Decimal(BeliefBar.at(Fraction(epsilon)).after)
    exact = 100 * factor / (factor + 1)
    assert exact <= float(after) <= min(exact + 0.1 + 1e-6, 100)


def test_a_small_probability_is_never_said_to_be_smaller():
    assert delta_in_words(Fraction("1e-5")) == "1 in 100,000"
    assert delta_in_words(Fraction("3e-6")) == "1 in 333,333"


@pytest.fixture
def made(tmp_path):
    """An artifact, keys, and policies that it meets and does not meet."""
    path = tmp_path / "file.onnx"
    path.write_bytes(compile_text(INTEGER_SPEC).model)
    for name, most in (("met", 9), ("unmet", 0.1)):
        (tmp_path / f"{name}.yaml").write_text(POLICY.format(most=most), "utf-8")
    keys = {"ed": Ed25519PrivateKey.generate(), "ec": generate_private_key(SECP256R1())}
    for name, key in keys.items():
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (tmp_path / f"{name}.pem").write_bytes(pem)
        (tmp_path / f"{name}.pem").chmod(0o600)
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (tmp_path / f"{name}.pub").write_bytes(public)
    (tmp_path / "file.onnx.sig").write_bytes(keys["ed"].sign(path.read_bytes()))
    return tmp_path


@pytest.mark.parametrize(
    ("signed", "policy", "kind", "says"),
    [
        (False, None, "mind", "Consistent. No signature was checked."),
        (False, "met", "mind", "Consistent, and meets the policy. No signature"),
        (True, None, "mind", "Verified: the file is signed."),
        (True, "met", "good", "Verified: the file is signed, and meets the policy."),
        (True, "unmet", "bad", "It does not meet the policy."),
        (False, "unmet", "bad", "It does not meet the policy."),
    ],
)
def test_only_a_signature_and_a_policy_make_it_green(made, signed, policy, kind, says):
    options = ["--public-key", made / "ed.pub"] * signed
    options += [] if policy is None else ["--policy", made / f"{policy}.yaml"]
    done = labeldp("report", made / "file.onnx", "-o", made / "page.html", *options)
    assert done.exit_code == 0, done.output
    page = (made / "page.html").read_text("utf-8")
    assert says in first_screen(page) and colour(page) in {kind, "mind" if kind == "good" else kind}
    if "limited use" not in page:
        assert colour(page) == kind
    assert ("Not met: 1 of 2 rules of company" in first_screen(page)) == (policy == "unmet")
    assert len(first_screen(page).split()) <= MOST_WORDS, first_screen(page)


def approve(made, key="ed", *options):
    words = [part for name, text in WORDS.items() for part in (f"--{name}", text)]
    return labeldp("report", made / "file.onnx", "--approve", made / f"{key}.pem", *words, *options)


@pytest.mark.parametrize("key", ["ed", "ec"])
def test_an_approval_beside_the_file_is_shown_and_checked(made, key):
    assert approve(made, key, "--policy", made / "met.yaml").exit_code == 0
    stated = approval_path(made / "file.onnx")
    assert stated.name == "file.onnx.approval.json"
    page = made / "page.html"
    checked = ["--approver", made / f"{key}.pub"]
    assert labeldp("report", made / "file.onnx", "-o", page, *checked).exit_code == 0
    said = Reader(page.read_text("utf-8")).sections["approval"]
    assert all(text in said for text in WORDS.values()) and "Signed with the key" in said
    done = labeldp("report", made / "file.onnx", "-o", page, "--overwrite")
    assert done.exit_code == 0
    assert "was not checked" in Reader(page.read_text("utf-8")).sections["approval"]
    other = "ec" if key == "ed" else "ed"
    done = labeldp(
        "report", made / "file.onnx", "-o", made / "no.html", "--approver", made / f"{other}.pub"
    )
    assert done.exit_code == 2 and not (made / "no.html").exists()


def test_an_approval_is_of_one_file_and_cannot_be_altered(made):
    assert approve(made).exit_code == 0
    stated = approval_path(made / "file.onnx")
    again = approve(made)
    assert again.exit_code == 2 and "exists already" in again.stderr
    original = stated.read_bytes()
    stated.write_bytes(original.replace(b'"payload": "', b'"payload": "eA'))
    page = ["report", made / "file.onnx", "-o", made / "no.html", "--approver", made / "ed.pub"]
    assert labeldp(*page).exit_code == 2
    stated.write_bytes(original)
    (made / "file.onnx").write_bytes(compile_text(INTEGER_SPEC.replace("example", "other")).model)
    done = labeldp("report", made / "file.onnx", "-o", made / "no.html")
    assert done.exit_code == 2 and "approves another file" in done.stderr


@pytest.mark.parametrize(
    "predicate",
    [
        list(FIELDS),
        dict.fromkeys(FIELDS),
        dict.fromkeys(FIELDS, 1),
        dict.fromkeys((*FIELDS, "more"), "x"),
        [],
        None,
    ],
)
def test_what_approves_nothing_is_no_approval(made, predicate):
    assert approve(made).exit_code == 0
    stated = approval_path(made / "file.onnx")
    envelope = json.loads(stated.read_text("utf-8"))
    statement = json.loads(base64.b64decode(envelope["payload"])) | {"predicate": predicate}
    envelope["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
    stated.write_text(json.dumps(envelope), "utf-8")
    done = labeldp("report", made / "file.onnx", "-o", made / "no.html")
    assert done.exit_code == 2 and "is no approval" in done.stderr


def test_what_does_not_meet_the_policy_is_not_approved(made):
    done = approve(made, "ed", "--policy", made / "unmet.yaml")
    assert done.exit_code == 1 and "not approved" in done.stderr
    (made / "file.onnx").write_bytes(b"no artifact")
    assert approve(made).exit_code in (1, 2)
    assert not approval_path(made / "file.onnx").exists()


def promise(epsilon="0.5", delta="1e-05", unit="label"):
    return {
        "epsilon": epsilon and Decimal(epsilon),
        "delta": Decimal(delta),
        "adjacency": "replacing the label of one row",
        "details": {"unit": unit},
        "mechanism": "it moves the sum by at most √18,852,593,225,580,006,080,512 (Theorem 13)",
        "released": ["release.npz"],
        "secret": ["the true labels"],
        "not_covered": [],
    }


def made_run():
    """What the trainer reads of a run folder."""
    return SimpleNamespace(
        name="visits",
        label="mdvis",
        epsilon=0.5,
        delta=1e-5,
        method="one_release",
        model=None,
        status="done",
        compared=[("mse", 0.25, None)],
        doubts=(),
    )


@pytest.mark.parametrize("unit", ["label", "user"])
def test_a_run_is_told_in_the_same_words(unit):
    page = run_page(RunFindings(None, made_run(), promise(unit=unit), "0" * 64, None, None, None))
    said = first_screen(page)
    assert PLAIN.fullmatch(said) and len(said.split()) <= MOST_WORDS, said
    assert colour(page) == "mind" and said.count("1 in 50,000") == 1
    assert ("per person" in said) == (unit == "user")
    assert ("Rows of one person add up" in said) == (unit == "label")
    assert "√" not in page and "about 1.3" in page and "δ" in Reader(page).sections["numbers"]


def test_no_number_is_given_for_odds_that_have_too_many_digits():
    said = of_run(promise(epsilon="60"), "y", None, None, "").how_much
    (odds,) = re.findall(r"odds grow at most ([0-9,]+) times", said)
    assert int(odds.replace(",", "")) >= math.floor(math.exp(60))
    said = of_run(promise(epsilon="200"), "y", None, None, "").how_much
    assert "rise to 100 percent at most." in said and "odds" not in said  # not those of ε = 60


def promised(epsilon, delta, **details):
    return promise(epsilon, delta) | {"details": details}


@pytest.mark.parametrize(
    ("stated", "units", "weak"),
    [
        (promised("1", "1e-6"), 1000, ""),
        (promised("50", "0"), None, "over 99 percent"),
        (promised("1", "0.999"), 1000, "allows publishing some values"),
        (promised("1", "0.999"), None, ""),
    ],
)
def test_a_promise_that_protects_hardly_anybody_is_red(stated, units, weak):
    shown = of_run(stated, "y", None, None, "", units=units)
    assert (shown.verdict == "bad") == bool(weak) and weak in shown.says
    assert (shown.seen_by == "Hardly anyone.") == bool(weak)


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"at_most": Decimal("2e-5")}, "say more have a probability of at most 1 in 50,000"),
        ({"at_most": Decimal("1e-9")}, "say twice as much are rarer than 1 in 500,000"),
        ({"at_most": "<b>"}, "say twice as much are rarer than 1 in 500,000"),
        ([1], "say twice as much are rarer than 1 in 500,000"),
    ],
)
def test_delta_is_not_said_to_be_the_probability_of_more(stated, said):
    shown = of_run(promised("1", "1e-6", loss_above_epsilon=stated), "y", None, None, "", units=9)
    assert said in shown.how_much
