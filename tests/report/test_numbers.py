"""Every number on a page is that of the certificate, or of the integers in the file."""

import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from labeldp_verify.analysis.probabilities import columns, equally_likely, range_sums, row, value

from labeldp_compile.page.document import plain, rounded_up
from labeldp_compile.report.facts import heat_map, label_facts
from labeldp_compile.report.page import report_page
from labeldp_compile.report.plots import posteriors
from tests.report.conftest import SPECS
from tests.report.reading import Reader


def stated(certificate, field):
    for key in field.split("."):
        certificate = certificate[key]
    return certificate


def exact_matrix(decoded):
    """[k][m] as fractions, by the row."""
    words = equally_likely(decoded.randomizer)
    size = decoded.domain.size
    return [[Fraction(c, words) for c in row(decoded.randomizer, y)] for y in range(size)]


@pytest.mark.parametrize("name", ["bins", "unbiased", "additive", "hostile", "penalty"])
def test_fields_are_those_of_the_certificate(found, pages, name):
    decoded = found[name].decoded
    page = Reader(pages(name))
    named = {field for field, _ in page.fields}
    assert {
        "privacy.epsilon_label",
        "privacy.epsilon_label_bound",
        "utility.noisy_label_loss",
    } <= named
    assert ("utility.largest_bias" in named) == (name != "hostile")
    exact = {"privacy.epsilon_label_bound": "exact.epsilon_label_bound"}
    for field, text in page.fields:
        wanted = stated(decoded.certificate.to_json(), exact.get(field, field))
        same = (
            Fraction(text) == Fraction(wanted) if isinstance(wanted, str) else float(text) == wanted
        )
        assert same, field


def test_the_table_of_labels_is_that_of_the_integers(found, pages):
    decoded = found["clipped"].decoded
    page = Reader(pages("clipped"))
    shown = [cells for section, cells in page.rows if section == "moments" and cells]
    facts = label_facts(decoded.domain, decoded.randomizer, range(decoded.domain.size))
    assert len(shown) == len(facts) == 10
    for cells, label in zip(shown, facts, strict=True):
        wanted = [label.label, label.mean, label.bias, label.deviation, label.unchanged]
        assert [float(cell) for cell in cells] == wanted


@pytest.mark.parametrize("name", list(SPECS))
def test_the_heat_map_adds_up_the_matrix(found, name):
    decoded = found[name].decoded
    r, heat = decoded.randomizer, heat_map(decoded)
    exact = exact_matrix(decoded)
    assert heat.labels == list(range(decoded.domain.size))
    bins = len(heat.shares)
    edges = np.linspace(*heat.output_axis, bins + 1)
    first, last = heat.outputs
    for y, shares in enumerate(heat.shares.T):
        wanted = [Fraction(0)] * bins
        for i, p in enumerate(exact[y]):
            output = value(r, i)
            if name == "hostile":
                wanted[i] += p
            elif first <= output <= last:
                wanted[np.searchsorted(edges, float(output)) - 1] += p
        assert np.allclose(shares, [float(p) for p in wanted], atol=1e-14)
        assert sum(shares) >= 0.999 and (heat.tails or sum(shares) == pytest.approx(1))


@pytest.mark.parametrize("name", list(SPECS))
def test_sums_and_columns_agree_with_exact_rows(found, name):
    r, exact = found[name].decoded.randomizer, exact_matrix(found[name].decoded)
    starts = np.array(sorted({0, 1, 1 + r.outputs // 3, r.outputs - 1, r.outputs}))
    starts = np.insert(starts, 1, starts[1])  # an empty range
    labels = [0, len(exact) - 1]
    sums = range_sums(r, labels, starts)
    for position, y in enumerate(labels):
        wanted = [float(sum(exact[y][a:b])) for a, b in pairwise(starts)]
        assert np.allclose(sums[position], wanted, atol=1e-14)
    shown = [0, r.outputs // 2, r.outputs - 1]
    for i, column in zip(shown, columns(r, shown), strict=True):
        assert np.allclose(column, [float(p[i]) for p in exact], rtol=1e-12)


@pytest.mark.parametrize("name", ["bins", "unbiased", "table", "additive", "hostile"])
def test_posteriors_follow_bayes_and_keep_to_the_bound(found, name):
    decoded = found[name].decoded
    exact, result = exact_matrix(decoded), posteriors(decoded)
    weights = decoded.certificate.prior.weights
    ratio = Fraction(decoded.certificate.exact.realised_ratio)
    by_value = {value(decoded.randomizer, i): i for i in range(decoded.randomizer.outputs)}
    assert result.prior.tolist() == pytest.approx([w / sum(weights) for w in weights])
    for seen in result.seen:
        column = [p[by_value[seen.value]] for p in exact]
        joint = [w * p for w, p in zip(weights, column, strict=True)]
        belief = [float(j / sum(joint)) for j in joint]
        assert seen.belief.tolist() == pytest.approx(belief)
        assert seen.probability == pytest.approx(float(sum(joint) / sum(weights)))
        assert seen.ratio == pytest.approx(float(max(column) / min(column)))
        assert seen.ratio <= float(ratio) * (1 + 1e-9)
        assert seen.after == pytest.approx(max(belief))


def test_composition_adds_up_exactly(found):
    decoded = found["bins"].decoded
    exact = replace(decoded.certificate.exact, epsilon_label="1/3", epsilon_total="1/2")
    decoded = replace(decoded, certificate=replace(decoded.certificate, exact=exact))
    page = report_page(replace(found["bins"], decoded=decoded))
    row = r'<th scope="row">(\d+)</th><td><data value="([^"]*)">[^<]*</data></td>'
    rows = re.findall(rf'{row}<td><data value="([^"]*)">', page.split("Pure ε for one person")[-1])
    assert [(int(n), float(label), float(total)) for n, label, total in rows[:10]] == [
        (n, float(Fraction(n, 3)), float(Fraction(n, 2))) for n in range(1, 11)
    ]


def test_what_many_labels_cost_is_the_certificate_s(found, pages):
    assert "labeldp ledger total" in pages("bins")
    stated = found["users"].decoded.certificate.to_json()["composition"]
    page = pages("users")
    assert "labeldp ledger total" not in page
    assert "all 20 labels of one person" in page
    for index, line in enumerate(stated["epsilon_at_delta"]):
        field = f'data-field="composition.epsilon_at_delta.{index}"'
        (value,) = re.findall(rf'<data value="([^"]*)" {field}>', page)
        assert Fraction(value) == Fraction(line["epsilon"])


def test_where_delta_buys_nothing_the_page_says_so(found, pages):
    decoded = found["users"].decoded
    certificate = decoded.certificate
    stated = certificate.composition
    assert "the ε of each line is proved" in pages("users") and "buys nothing" not in pages("users")
    said = Reader(pages("users")).sections["composition"]
    assert f"spend ε = {rounded_up(Fraction(stated.epsilon_pure), 6)} at δ = 0" in said
    assert "cost less" not in pages("users") + pages("bins")  # δ may buy a thousandth
    rows = [replace(line, epsilon=stated.epsilon_pure) for line in stated.epsilon_at_delta]
    parts = {**certificate.parts, "composition": replace(stated, epsilon_at_delta=rows)}
    same = replace(certificate, parts=parts)
    page = report_page(replace(found["users"], decoded=replace(decoded, certificate=same)))
    assert "buys nothing" in page and "of each line" not in page


def test_the_declared_number_of_labels_is_among_what_the_certificate_says(pages):
    assert 'labels_per_user</th><td><data value="20">' in pages("users")
    assert "labels_per_user</th>" not in pages("bins")


def test_how_numbers_are_written():
    written = {
        0: "0",
        1234.5: "1,234.5",
        -0.25: "−0.25",
        682959.123: "682,959",
        3.14159265: "3.1416",
        9.99994e-5: "9.9999 × 10⁻⁵",
        -3.1e-15: "−3.1 × 10⁻¹⁵",
        99999.96: "100,000",
        2e12: "2 × 10¹²",
    }
    assert {number: plain(number) for number in written} == written


@pytest.mark.parametrize("bound", ["1", "2.0000001", "7.26960384", "0.00001234567", "123456.7"])
def test_bounds_are_rounded_up(bound):
    text = rounded_up(Fraction(bound), 5)
    mantissa, _, power = text.replace(",", "").partition(" × 10")
    digits = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    shown = Fraction(mantissa) * Fraction(10) ** int(power.translate(digits) or 0)
    assert Fraction(bound) <= shown <= Fraction(bound) * Fraction("1.0001")
