"""Files with tables by group: what verifies, what is proved of each group, and hostile ones."""

import json
from fractions import Fraction

import numpy as np
import pytest
from labeldp_verify import Budget, TooLargeError, check_bytes
from labeldp_verify.analysis.lower_bound import BiasRule
from labeldp_verify.claims import Declaration
from labeldp_verify.forms import (
    GroupedWindows,
    Groups,
    IntegerDomain,
    Integers,
)
from labeldp_verify.graph import write_model
from labeldp_verify.usefulness.shortcomings import ONE_OUTPUT

from labeldp_compile.build.assembly import build_certificate
from labeldp_compile.mechanisms.mechanism import DualBound
from labeldp_compile.prior.priors import TablePrior
from labeldp_compile.rounding.windows import randomized_response
from verifier.tests.analysed import realised_ratio
from verifier.tests.files import (
    DOMAIN,
    certificate_of,
    file_of,
    with_constant,
)
from verifier.tests.integers import grouped, plain_counts, replaced, some_windows

SIZES = (5, 0, 11, 2)


def forged(randomizer, certificate, change=lambda c: None, domain=DOMAIN):
    """What somebody with the open writer makes of a certificate that was changed."""
    value = json.loads(json.dumps(certificate))
    change(value)
    return write_model(domain, randomizer, value)


def test_each_table_is_claimed_as_in_a_file_of_its_own():
    randomizer = grouped()
    stated = certificate_of(file_of(DOMAIN, randomizer, sizes=SIZES))
    for i, (table, window) in enumerate(
        zip(stated["groups"]["tables"], randomizer.windows, strict=True)
    ):
        weights = table["prior"]["weights"]
        alone = certificate_of(file_of(DOMAIN, window, Fraction(2), "squared", weights=weights))
        assert table["size"] == SIZES[i]
        assert table["outputs"] == alone["outputs"]
        assert table["utility"] == alone["utility"]
        assert table["epsilon_label_bound"] == alone["privacy"]["epsilon_label_bound"]
        for name, text in table["exact"].items():
            assert text == alone["exact"][name], name


def test_epsilon_is_the_largest_and_losses_are_weighted_with_the_sizes():
    randomizer = grouped()
    report = check_bytes(file_of(DOMAIN, randomizer, sizes=SIZES))
    assert report.ok
    certificate = report.certificate
    ratios = [realised_ratio(window) for window in randomizer.windows]
    assert Fraction(certificate.exact.realised_ratio) == max(ratios)
    loss = bias = square = Fraction(0)
    for size, table, window in zip(SIZES, certificate.tables, randomizer.windows, strict=True):
        weights = table.prior.weights
        for row, y in enumerate(range(10, 14)):
            counts = plain_counts(window, row)
            mean = sum(Fraction(v) * n for v, n in counts.items()) / window.words
            cost = sum((Fraction(v) - y) ** 2 * n for v, n in counts.items()) / window.words / 2
            share = Fraction(size * weights[row], sum(SIZES) * sum(weights))
            loss += share * cost
            square += share * (mean - y) ** 2
            bias = max(bias, abs(mean - y))
    assert Fraction(certificate.exact.noisy_label_loss) == loss
    assert certificate.utility.noisy_label_loss == float(loss)
    assert Fraction(certificate.exact.largest_bias) == bias
    assert certificate.utility.rms_bias == float(square) ** 0.5
    assert report.artifact.only is None
    assert report.artifact.lookup == randomizer
    assert [part.text for part in report.artifact.shortcomings if part.kind == ONE_OUTPUT] == [
        "group 1099511627776: every label becomes the same output, so private labels carry no "
        "information"
    ]
    assert report.to_json()["warnings"][0] == {
        "kind": "one_output",
        "text": report.artifact.shortcomings[0].text,
        "for_training_only": False,
        "for_labels_only": False,
    }
    assert report.artifact.table(1).usefulness.deviation is not None


def bounded(duals):
    """Two groups whose randomizers are constants, with dual values [3] each."""
    domain = IntegerDomain(0, 1)
    windows = tuple(randomized_response([v], [0, 0], Fraction(1), 8) for v in (0.0, 0.5, 1.0))
    prior = {"kind": "public", "weights": [1, 3]}
    priors = [TablePrior(prior, size) for size in (1, 2, 0)]
    provenance = Declaration("t", "m", "y", Fraction(1), Fraction(0), prior, "0" * 64, {})
    randomizer = GroupedWindows(Groups.of(("a", "b")), windows)
    certificate = build_certificate(
        Integers.of(domain, randomizer), "squared", provenance, priors, duals
    ).to_json()
    return write_model(domain, randomizer, certificate), certificate


def test_bounds_of_all_tables_with_rows_make_a_bound_of_the_whole():
    dual = DualBound([0.01, 0.02], [0.0, 0.0], BiasRule("any", Fraction(0)))
    model, stated = bounded([dual, dual, None])
    report = check_bytes(model)
    assert report.ok, report.checks
    bounds = [Fraction(t["exact"]["loss_lower_bound"]) for t in stated["groups"]["tables"][:2]]
    assert Fraction(stated["exact"]["loss_lower_bound"]) == (bounds[0] + 2 * bounds[1]) / 3 > 0
    loss = Fraction(stated["exact"]["noisy_label_loss"])
    assert stated["utility"]["certified_gap"] == pytest.approx(
        float(loss / Fraction(stated["exact"]["loss_lower_bound"]) - 1)
    )
    model, stated = bounded([dual, None, None])
    assert check_bytes(model).ok
    assert stated["exact"]["loss_lower_bound"] is None
    assert stated["groups"]["tables"][0]["exact"]["loss_lower_bound"] is not None


@pytest.mark.parametrize("order", [(1, 0, 2, 3), (0, 1, 3, 2), (3, 2, 1, 0)])
def test_swapped_tables_under_the_old_certificate(order):
    certificate = certificate_of(file_of(DOMAIN, grouped()))
    windows = some_windows()
    randomizer = replaced(grouped(), windows=tuple(windows[i] for i in order))
    assert not check_bytes(forged(randomizer, certificate)).ok


def test_one_group_beyond_epsilon_among_good_ones_is_named():
    randomizer = grouped(("good", "bad", "fine"))
    certificate = certificate_of(file_of(DOMAIN, randomizer))
    wide = randomized_response([float(y) for y in range(10, 14)], range(4), Fraction(3), 10)
    windows = (randomizer.windows[0], wide, *randomizer.windows[2:])
    report = check_bytes(forged(replaced(randomizer, windows=windows), certificate))
    assert report.checks[-1].name == "privacy"
    assert "group 'bad': an output can be" in report.checks[-1].detail
    with pytest.raises(ValueError, match="not ε-DP"):
        file_of(DOMAIN, replaced(randomizer, windows=windows))


def test_the_label_is_no_group():
    with pytest.raises(ValueError, match="would disclose the label"):
        build_certificate(
            Integers.of(DOMAIN, grouped()),
            "squared",
            Declaration("t", "m", "g", Fraction(2), Fraction(0), {}, "0" * 64, {}),
            [TablePrior({}, 1)] * 4,
            [None] * 4,
        )


def moved(i, by):
    """Add to one entry."""

    def change(entries):
        entries[i : i + 1] += np.asarray(by).astype(entries.dtype)
        return entries

    return change


def test_groups_that_are_numbered_need_no_map_and_have_their_own_hostile_ones():
    model = file_of(DOMAIN, grouped((0, 1, 2)))
    assert check_bytes(model).ok
    for by in (1, -1):
        assert not check_bytes(with_constant(model, "group_end", moved(0, by))).ok


def test_checking_many_groups_has_a_budget_before_it_begins():
    randomizer = GroupedWindows(
        Groups.of(tuple(range(600))), (randomized_response([11.5], [0] * 4, Fraction(1), 8),) * 601
    )
    model = file_of(DOMAIN, randomizer)
    assert check_bytes(model).ok
    with pytest.raises(TooLargeError, match="2,404 labels of 601 groups"):
        check_bytes(model, budget=Budget(0.25, 2 * 10**9))
