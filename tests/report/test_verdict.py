"""The card on top of a page: green, amber for labels that are worth little, red; what it states."""

import hashlib
import re
from functools import cache

import pytest

from labeldp_compile.report.page import examine, report_page
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.fixtures.specs import spec
from tests.report.reading import Reader


def constant(*weights):
    return spec(
        values=["<b>yes</b>", "no", "unsure"],
        out_of_domain={"default": "no"},
        name="constant",
        goal="labels",
        column="answer",
        prior={"kind": "public", "weights": weights},
        mechanism="rr_with_prior",
    )


CONSTANT = constant(90, 7, 3)
# One of the categories never comes out; and what is good for single labels alone.
DROPS = constant(50, 49, 1)
SINGLE = INTEGER_SPEC.replace("name: ", "goal: labels\nname: ").replace("rr_on_bins", "auto")


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


def test_a_goal_that_the_certificate_names_is_heeded(made):
    single, named = made(SINGLE), made(INTEGER_SPEC)
    assert single.decoded.certificate.goal == "labels"
    assert all(shortcoming.for_training_only for shortcoming in named.decoded.shortcomings)
    pages = [report_page(findings) for findings in (single, named)]
    assert ["limited use" in page for page in pages] == [False, True]
    goals = ["labels, declared", "not stated: the spec named the mechanism"]
    assert [row(page, "goal") for page in pages] == goals


def row(page, what):
    """What the card says beside these words."""
    found = re.findall(rf"<dt>{what}</dt>\s*<dd>(.*?)</dd>", page, re.DOTALL)
    (shown,) = (re.sub(r"<.*?>", "", text).strip() for text in found)
    return " ".join(shown.split())


def test_the_card_states_epsilon_use_gap_and_the_whole_digest(found, pages, files):
    decoded, page = found["unbiased"].decoded, pages("unbiased")
    assert row(page, "privacy of a label") == "ε ≤ 1, proved; ε = 1 is declared"
    shown = " ".join(re.sub("<.*?>", " ", page).split())
    for _, words in decoded.figures(verbose=True):
        assert " ".join(words.split()) in shown
    assert "that is right on average for every label, proved" in row(page, "certified gap")
    digest = hashlib.sha256(files["unbiased"].read_bytes()).hexdigest()
    assert row(page, "SHA-256 of the file") == digest
    assert row(pages("table"), "certified gap").startswith("not known: ")
    assert row(pages("penalty"), "certified gap").startswith("loss and penalty are at most (1 + ")


def test_a_file_that_does_not_verify_is_red(files, tmp_path):
    data = bytearray(files["bins"].read_bytes())
    data[-1] ^= 1
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(data)
    page = report_page(examine(damaged))
    assert colour(page) == "bad" and hashlib.sha256(data).hexdigest() in page
    assert "<nav" not in page
