"""The card on top of a page: green, amber for labels that are worth little, red; what it states."""

import hashlib
import re
from functools import cache
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from labeldp_compile.cli import main
from labeldp_compile.report.page import examine, report_page
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.report.conftest import SPECS
from tests.report.reading import Reader

CONSTANT = """
version: 1
name: constant
goal: labels
label:
  column: answer
  domain: {kind: categorical, values: ['<b>yes</b>', 'no', 'unsure']}
  out_of_domain: {default: 'no'}
loss: zero_one
privacy: {epsilon: 1}
prior: {kind: public, weights: [90, 7, 3]}
mechanism: {kind: rr_with_prior}
"""
# One of the categories never comes out; and what is good for single labels alone.
DROPS = CONSTANT.replace("weights: [90, 7, 3]", "weights: [50, 49, 1]")
SINGLE = INTEGER_SPEC.replace("name: ", "goal: labels\nname: ").replace("rr_on_bins", "auto")
TRAINING = INTEGER_SPEC.replace("rr_on_bins", "auto")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Findings of a file by the text of its spec."""
    folder = tmp_path_factory.mktemp("verdicts")

    @cache
    def of(text):
        path = folder / "file.onnx"
        path.write_bytes(compile_text(text).model)
        return examine(path)

    return of


def colour(page):
    (kind,) = re.findall(r'class="verdict (\w+)"', page)
    return kind


@pytest.mark.parametrize("text", [CONSTANT, DROPS], ids=["constant", "drops"])
def test_labels_that_are_worth_little_are_amber_and_never_best(made, text):
    findings = made(text)
    warnings = [shortcoming.text for shortcoming in findings.decoded.shortcomings]
    assert warnings
    page = report_page(findings)
    assert colour(page) == "mind"
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    assert not re.search(r"\bbest\b|\boptimal\b(?!_)", body, re.IGNORECASE)
    card = Reader(page).sections["numbers"]
    assert all(warning in card for warning in warnings)
    assert "These labels are of limited use:" in card
    assert "Of limited use." in Reader(page).sections["decision"]
    assert "A small loss does not make labels useful" in Reader(page).sections["loss"]


def test_what_a_constant_says_is_named(made):
    constant = Reader(report_page(made(CONSTANT))).sections["numbers"]
    assert "private labels carry no information" in constant
    drops = report_page(made(DROPS.replace("unsure", "<i>no</i>")))
    card = Reader(drops).sections["numbers"]
    assert "1 of 3 categories never come out: <i>no</i>" in card and "i" not in Reader(drops).tags


def test_useful_labels_are_not_green_without_a_policy_and_a_signature(made):
    page = report_page(made(TRAINING))
    assert colour(page) == "mind"
    assert "limited use" not in page and "this is the best possible" in page
    assert row(page, "goal") == "training, declared"


def test_a_goal_that_the_certificate_names_is_heeded(made):
    single, named = made(SINGLE), made(INTEGER_SPEC)
    assert single.decoded.certificate.goal == "labels"
    assert all(shortcoming.for_training_only for shortcoming in named.decoded.shortcomings)
    pages = [report_page(findings) for findings in (single, named)]
    assert ["limited use" in page for page in pages] == [False, True]
    goals = ["labels, declared", "not stated: the spec named the mechanism"]
    assert [row(page, "goal") for page in pages] == goals


def test_commands_heed_the_goal(tmp_path):
    table = tmp_path / "t.csv"
    for text, warned in ((SINGLE, False), (INTEGER_SPEC, True)):
        compiled = compile_text(text)
        path, output = compiled.write(tmp_path, overwrite=True), tmp_path / f"{warned}.csv"
        table.write_text(f"{compiled.certificate.label_columns[0]}\n1\n2\n", encoding="utf-8")
        for command in (["report", path], ["randomize", path, table, "-o", output]):
            done = CliRunner().invoke(main, list(map(str, command)))
            assert done.exit_code == 0
            assert ("warning: " in done.output) == warned, command


def row(page, what):
    """What the card says beside these words."""
    found = re.findall(rf"<dt>{what}</dt>\s*<dd>(.*?)</dd>", page, re.DOTALL)
    (shown,) = (re.sub(r"<.*?>", "", text).strip() for text in found)
    return " ".join(shown.split())


def test_the_card_states_epsilon_use_gap_and_the_whole_digest(found, pages, files):
    decoded, page = found["unbiased"].decoded, pages("unbiased")
    assert row(page, "privacy of a label") == "ε ≤ 1, proved; ε = 1 is declared"
    for what, words in decoded.figures():
        assert row(page, what) == words
    assert "that is right on average for every label, proved" in row(page, "certified gap")
    digest = hashlib.sha256(files["unbiased"].read_bytes()).hexdigest()
    assert row(page, "SHA-256 of the file") == digest
    assert row(pages("table"), "certified gap").startswith("not known: ")
    assert row(pages("penalty"), "certified gap").startswith("loss and penalty are at most (1 + ")


def test_who_signed_is_said_in_full(files, pages, tmp_path):
    key = Ed25519PrivateKey.generate()
    public = key.public_key()
    pem, signature = tmp_path / "public.pem", tmp_path / "file.sig"
    pem.write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    signature.write_bytes(key.sign(files["bins"].read_bytes()))
    options = ["--public-key", str(pem), "--signature", str(signature)]
    output = tmp_path / "report.html"
    result = CliRunner().invoke(main, ["report", str(files["bins"]), "-o", str(output), *options])
    assert result.exit_code == 0, result.output
    raw = public.public_bytes(Encoding.Raw, PublicFormat.Raw)
    page = Reader(output.read_text(encoding="utf-8"))
    assert "Verified: the file is signed." in page.sections["decision"]
    card = page.sections["numbers"]
    assert hashlib.sha256(raw).hexdigest() in card
    assert "no signature was checked" in row(pages("bins"), "signed by")


def test_a_file_that_does_not_verify_is_red(files, tmp_path):
    data = bytearray(files["bins"].read_bytes())
    data[-1] ^= 1
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(data)
    page = report_page(examine(damaged))
    assert colour(page) == "bad" and hashlib.sha256(data).hexdigest() in page
    assert "<nav" not in page


@pytest.mark.parametrize("name", list(SPECS))
def test_the_contents_lead_to_every_section(pages, name):
    text = pages(name)
    (contents,) = re.findall(r"<nav class=\"contents[^>]*>(.*?)</nav>", text, re.DOTALL)
    anchors = re.findall(r'href="#(\w+)"', contents)
    assert anchors == [section for section in Reader(text).sections if section]
    headings = re.findall(r"<section id=\"\w+\"[^>]*><h2>(.*?)</h2>", text)
    assert ["Decision", *headings] == re.findall(r">([^<>]+)</a>", contents)


@pytest.mark.parametrize("name", ["bins", "unbiased", "hostile"])
def test_pictures_are_drawn_for_the_width_of_a_telephone(pages, name):
    """390 px less the margins: text of 9.5 pt is then at least 8 px high."""
    pictures = re.findall(r"<figure[^>]*>.*?(<svg.*?</svg>)", pages(name), re.DOTALL)
    assert len(pictures) >= 3 and pages(name).count('<figure class="fits') == len(pictures)
    for picture_ in pictures:
        *_, width, _ = map(float, ElementTree.fromstring(picture_).attrib["viewBox"].split())
        assert width * 8 <= 354 * 9.5
