"""No person's outputs exceed ε: every table of a few rows, every other set of labels of a person.

The prior is tried with what really gets noise: the counts and scales that a compile draws with.
Noise of scale s that is added to counts makes an output at most e^(Σ|c − c′|/s) times as likely
for counts c as for counts c′, and some output exactly so.
"""

import shutil
from collections import Counter
from fractions import Fraction
from itertools import product

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_verify.analysis import exp_bounds

from labeldp_compile.ledger.book import create_ledger, read_contents
from labeldp_compile.prior import obtain
from labeldp_compile.prior.obtain import estimate_prior
from labeldp_compile.prior.plan import PriorPlan
from labeldp_compile.spec import parse_spec
from tests.cli.test_cli import labeldp
from tests.composition.brute_force import rows_of
from tests.fixtures.compiled import compile_text
from tests.persons.made import spec, table

LABELS = 3  # 0, 1, 2
CUSTOMERS = ["a", "b", "a", "a", "b"]  # a has three rows, and b two
REGIONS = ["x", "x", "y", "x", "y"]
GROUPS = "groups: {column: region, values: [x, y]}\n"


def worst_ratio(artifact, labels):
    """The largest ratio of probabilities of a person's ``labels`` private labels together."""
    rows, _ = rows_of(artifact.randomizer, LABELS)
    worst = Fraction(0)
    for one, other in product(product(range(LABELS), repeat=labels), repeat=2):
        for outputs in product(range(len(rows[0])), repeat=labels):
            ratio = Fraction(1)
            for y, z, output in zip(one, other, outputs, strict=True):
                ratio *= Fraction(rows[y][output], rows[z][output])
            worst = max(worst, ratio)
    return worst


@pytest.mark.parametrize("labels", [1, 2, 3])
@pytest.mark.parametrize("mechanism", ["randomized_response", "rr_on_bins", "optimal_unbiased"])
def test_all_labels_of_a_person_together(labels, mechanism):
    text = spec(labels, "1.7", "{kind: public, weights: [3, 2, 1]}")
    artifact = compile_text(text.replace("randomized_response", mechanism))
    worst = worst_ratio(artifact, labels)
    assert worst <= exp_bounds(Fraction("1.7"))[0]
    assert worst > exp_bounds(Fraction("1.69"))[1]  # and it is not wasted


@pytest.fixture
def noised(monkeypatch):
    """What gets noise: (counts, scale) of each histogram of a compile."""
    seen = []
    real = obtain.noisy_histogram

    def noisy(counts, epsilon):
        found = real(counts, epsilon)
        seen.append((counts.tolist(), found.scale))
        return found

    monkeypatch.setattr(obtain, "noisy_histogram", noisy)
    return seen


@pytest.mark.parametrize("labels", [1, 2, 3])
@pytest.mark.parametrize("by_region", [False, True])
def test_the_prior_and_all_labels_of_a_person_together(
    labels, by_region, noised, tmp_path, monkeypatch
):
    prior, epsilon = "{kind: private, data: t.parquet}", Fraction(3)
    text = spec(labels, 3, prior, split={"prior": 1.2, "label": 1.8})
    text = text.replace("randomized_response", "rr_on_bins") + (GROUPS if by_region else "")
    if by_region:  # a histogram of all rows, and those of both regions, however few rows there are
        plan = PriorPlan(
            epsilon_pooled=Fraction("0.8") / labels,
            epsilon_label=Fraction("1.8") / labels,
            epsilon_tables=Fraction("0.4") / labels,
            table_of_cell=(0, 1),
            tables=2,
        )
        monkeypatch.setattr(obtain, "plan_prior", lambda *_: plan)
    of_tables = {}
    for returned in product(range(LABELS), repeat=len(CUSTOMERS)):
        if returned[1] or returned[4] > 1:  # some labels of the other person are enough
            continue
        table(tmp_path / "t.parquet", CUSTOMERS, list(returned), region=REGIONS)
        noised.clear()
        found = estimate_prior(parse_spec(text), tmp_path)
        of_tables[returned] = [(counts, Fraction(scale)) for counts, scale in noised]
    of_label = found.epsilon_label
    worst = Fraction(0)
    for (one, levels), (other, others) in product(of_tables.items(), repeat=2):
        if any(one[i] != other[i] for i, who in enumerate(CUSTOMERS) if who == "b"):
            continue  # more than one person differs
        spent = Fraction(0)
        for (counts, scale), (counts_, scale_) in zip(levels, others, strict=True):
            assert scale == scale_ and sum(counts) == sum(counts_)
            spent += sum(abs(a - b) for a, b in zip(counts, counts_, strict=True)) / scale
        worst = max(worst, spent)
    assert worst + labels * of_label <= epsilon
    assert worst > Fraction("1.19")  # L rows of a person do change 2·L counts
    counted = sum(min(CUSTOMERS.count(who), labels) for who in "ab")
    assert all(sum(levels[0][0]) == counted for levels in of_tables.values())
    assert all(len(levels) == 1 + by_region for levels in of_tables.values())


def test_the_compiled_file_says_what_the_brute_force_finds(tmp_path):
    from labeldp_compile import compile_spec

    table(tmp_path / "t.parquet", CUSTOMERS * 40, [0, 1, 2, 1, 0] * 40)
    text = spec(2, 3, "{kind: private, data: t.parquet}", split={"prior": 1.2, "label": 1.8})
    (tmp_path / "s.yaml").write_text(text)
    artifact = compile_spec(tmp_path / "s.yaml")
    stated = artifact.certificate.person
    assert (stated.l1_sensitivity, stated.epsilon_prior, stated.epsilon_total) == (4, "6/5", "3")
    assert artifact.certificate.prior.rows == 4  # two of each of two persons
    cost = Fraction(stated.l1_sensitivity) / Fraction(artifact.certificate.prior.scale)
    assert cost + 2 * Fraction(artifact.certificate.exact.epsilon_label) <= 3


def tables_of(rows):
    """Every table of this many rows, by who has which: persons are numbered as they come."""
    found = [[0]]
    for _ in range(rows - 1):
        found = [[*who, one] for who in found for one in range(max(who) + 2)]
    return found


@pytest.mark.parametrize("options", [["null"], ["drop", "--order-column", "place"]])
def test_what_randomize_draws_of_a_person_is_within_epsilon(options, tmp_path):
    """The command itself: every table of three rows in two parts, with two sets of labels."""
    artifact = compile_text(spec(2, "1.7"))
    (tmp_path / "a.onnx").write_bytes(artifact.model)
    (one_label,) = {worst_ratio(artifact, 1)}
    ledger = tmp_path / "l.ledger"
    create_ledger(ledger)
    (tmp_path / "t").mkdir()
    for number, who in enumerate(tables_of(3)):
        labelled = []
        for labels in ([0, 0, 0], [2, 1, 2]):
            for part in range(2):
                rows = slice(2 * part, 2 * part + 2)
                places = [2, 1, 0][rows]
                table(tmp_path / "t" / f"{part}.parquet", who[rows], labels[rows], place=places)
            words = ["randomize", tmp_path / "a.onnx", tmp_path / "t", "-o", tmp_path / "o"]
            words += ["--beyond", *options, "--ledger", ledger, "--data-set", f"d{number}"]
            assert labeldp(*words).exit_code == 0
            out = [pq.read_table(tmp_path / "o" / f"{part}.parquet") for part in range(2)]
            drawn = pa.concat_tables(out).to_pylist()
            labelled.append(
                [(r["customer"], r["place"]) for r in drawn if r["returned"] is not None]
            )
            shutil.rmtree(tmp_path / "o")
        assert labelled[0] == labelled[1]  # no label decides
        counts = Counter(customer for customer, _ in labelled[0])
        assert counts == {one: min(2, who.count(one)) for one in set(who)}
        assert all(one_label**count <= exp_bounds(Fraction("1.7"))[0] for count in counts.values())
        draws = [e.facts for e in read_contents(ledger).entries if e.kind == "draw"][-2:]
        rows = len(labelled[0]) if options[0] == "drop" else 3
        booked = [(d["data_set"], d["rows"], d["persons"], d["epsilon"]) for d in draws]
        assert booked == [(f"d{number}", rows, len(counts), "17/10")] * 2
    # Without a key, each of the two runs drew, and a person spends ε in both.
    totals = read_contents(ledger)
    assert all(totals.totals(f"d{i}").person == Fraction("3.4") for i in range(number + 1))
