"""Every number on a page is that of the certificate, or of the integers in the file."""

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from labeldp_verify.analysis.probabilities import equally_likely, row, value

from labeldp_compile.page.document import rounded_up
from labeldp_compile.report.facts import heat_map
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


@pytest.mark.parametrize("bound", ["1", "2.0000001", "7.26960384", "0.00001234567", "123456.7"])
def test_bounds_are_rounded_up(bound):
    text = rounded_up(Fraction(bound), 5)
    mantissa, _, power = text.replace(",", "").partition(" × 10")
    digits = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    shown = Fraction(mantissa) * Fraction(10) ** int(power.translate(digits) or 0)
    assert Fraction(bound) <= shown <= Fraction(bound) * Fraction("1.0001")
