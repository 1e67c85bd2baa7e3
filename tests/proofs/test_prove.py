"""Artifacts are proved by Coq, drawn as the file draws; what does not hold is refused."""

from fractions import Fraction

import numpy as np
import pytest
from labeldp_verify.decode import read_form, read_model
from labeldp_verify.forms import AdditiveRandomizer
from labeldp_verify.graph.alias_table import alias_entries
from labeldp_verify.kernel import Noise, Table, Window, counts, integers_of

from labeldp_compile.api import compile_spec
from labeldp_compile.export.coq import terms
from tests.fixtures.compiled import compile_text
from tests.proofs.artifacts import (
    OLD,
    ROOT,
    checked,
    decoded,
    old_file,
    old_path,
    proof_of_file,
    short_proof,
)

SPECS = sorted((ROOT / "specs").glob("*.yaml"))


def test_every_example_is_proved(theory):
    proofs = [proof_of_file(compile_spec(path).model) for path in SPECS]
    answer = checked(theory, proofs)
    assert len(proofs) >= 5 and answer.accepted, answer.why


def test_golden_files_are_proved(theory):
    proofs = [proof_of_file(path.read_bytes()) for path in OLD]
    assert len(proofs) >= 37 and sum("grid_check" in proof.text for proof in proofs) >= 15
    answer = checked(theory, proofs)
    assert answer.accepted, answer.why
    said = {name for proof in proofs for name in proof.theorems}
    assert said == {
        "artifact_is_private",
        "private_at_any_offset",
        "rounded_labels_are_private",
        "labels_of_one_person_are_private",
    }


def window_altered(r):
    """One word of an output's base goes to another: that output's ratio grows."""
    lengths = [length for length, _ in r.base]
    i, j = lengths.index(min(lengths)), lengths.index(max(lengths))
    base = [
        (b - (n == i) + (n == (j if j != i else i - 1)), answer)
        for n, (b, answer) in enumerate(r.base)
    ]
    return r._replace(base=base)


def table_altered(r):
    """A word of the likeliest output's least likely row goes to another output."""
    rows = [counts(row, r.bits, len(r.answers)) for row in r.rows]
    ratios = [Fraction(max(column), min(column)) for column in zip(*rows, strict=True)]
    output = ratios.index(max(ratios))
    lowest = min(rows, key=lambda row: row[output])
    lowest[output] -= 1
    lowest[output - 1] += 1
    return r._replace(rows=[alias_entries(row, r.bits) for row in rows])


def additive_altered(r):
    blocks = counts(r.block_entries, r.bits, 2 * r.half)
    blocks[1], blocks[2] = blocks[1] + 1, blocks[2] - 1
    return r._replace(block_entries=alias_entries(blocks, r.bits))


ALTERED = {Window: window_altered, Table: table_altered, Noise: additive_altered}


def altered(read):
    """The table with the largest ratio, altered."""
    tightest = max(read.tables, key=lambda table: table.ratio())
    tables = [ALTERED[type(table)](table) if table is tightest else table for table in read.tables]
    return read._replace(tables=tables, lookup=None)


@pytest.mark.parametrize(
    "name", ["rr-with-prior-text", "text", "exponential-text", "staircase-clipped-lattice"]
)
def test_integers_that_do_not_keep_to_it_are_refused(theory, name):
    found, read = old_file(name)
    answer = checked(theory, [short_proof(found, altered(read))])
    assert not answer.accepted and "true" in answer.why


def test_a_smaller_ratio_is_refused_by_a_hair(theory):
    found, read = old_file("rr-with-prior-text")
    ratio = Fraction(found.certificate.exact.realised_ratio)
    hair = Fraction(1, ratio.denominator * 2)
    assert not checked(theory, [short_proof(found, read, ratio=ratio - hair)]).accepted


def draws(name, count=40):
    """What Coq's draw must answer: that of the decoded file, for words at its thresholds."""
    path = old_path(name)
    found, read = old_file(name)
    data = path.read_bytes()
    form = read_form(found.certificate.form, read_model(data), data, found.label)
    rows, words = form.critical_words()
    some = np.unique(np.linspace(0, len(rows) - 1, count).astype(np.int64))
    rows, words = rows[some], words[some]
    outputs = form.outputs_of(rows, words).tolist()
    r = found.lookup
    if isinstance(r, AdditiveRandomizer):
        value = {r.value(t): t for t in range(r.low, r.high + 1)}
    else:
        value = {v: i for i, v in enumerate(r.values)}
    triples = [
        (y, f"({int(w[0])}, {int(w[1])})" if len(w) == 2 else int(w[0]), value[o])
        for y, w, o in zip(rows.tolist(), words, outputs, strict=True)
    ]
    listed = "; ".join(f"({y}, {w}, {o})" for y, w, o in triples)
    return found, read, listed


@pytest.mark.parametrize("wrong", [False, True])
def test_the_draw_that_is_proved_is_that_of_the_file(theory, wrong):
    """In the definitions that the theorems are about: evaluated, they answer as the file does."""
    terms_of = {
        "optimal-unbiased": "window_looked_up artifact 56 grid",
        "rr-top-k": "window_out artifact",
        "exponential-text": "table_out 64 2 artifact",
        "laplace": "additive_out artifact 7 4 blocks_entries below_entries above_entries",
    }
    proofs, more = [], []
    for name, draw in terms_of.items():
        found, read, listed = draws(name)
        answer = "snd p + 1" if wrong else "snd p"
        more.append(
            f"Goal forallb (fun p => {draw} (fst (fst p)) (snd (fst p)) =? {answer})\n"
            f"  [{listed}] = true. Proof. vm_compute. reflexivity. Qed.\n"
        )
        proofs.append(short_proof(found, read))
    assert checked(theory, proofs, more).accepted is not wrong


def test_the_terms_of_the_series_suffice():
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(9378446, 10**7), Fraction(20)):
        exact = Fraction(1)
        term = Fraction(1)
        for j in range(1, 200):
            term = term * epsilon / j
            exact += term
        ratio = exact - Fraction(1, 10**18)
        n = terms(ratio, epsilon)
        total = term = Fraction(1)
        for j in range(1, n + 1):
            term = term * epsilon / j
            total += term
        assert ratio <= total and total - term < ratio
    assert terms(Fraction(1), Fraction(0)) == 0
    with pytest.raises(ValueError, match=r"the ratio is not a lower bound of e\^epsilon"):
        terms(Fraction(3), Fraction(1))


def test_no_string_of_a_file_reaches_the_text(theory):
    name = '*) Print Assumptions nothing. (* "'
    text = f"""
version: 1
name: hostile
label:
  column: {name!r}
  domain: {{kind: categorical, values: [{name!r}, "b", "c"]}}
  out_of_domain: {{default: b}}
loss: zero_one
privacy: {{epsilon: 1}}
prior: {{kind: uniform}}
mechanism: {{kind: randomized_response}}
"""
    data = compile_text(text).model
    proof = short_proof(decoded(data), integers_of(data))
    assert "Print Assumptions nothing" not in proof.text and "hostile" not in proof.text
    assert checked(theory, [proof]).accepted
