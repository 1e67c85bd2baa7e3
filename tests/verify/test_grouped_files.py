"""Files with tables by group: what verifies, what is proved of each group, and hostile ones."""

import json
from fractions import Fraction

import numpy as np
import onnx
import pytest
from labeldp_verify import Budget, TooLargeError, check_bytes
from labeldp_verify.analysis.lower_bound import BiasRule
from labeldp_verify.claims import Declaration, parse_certificate
from labeldp_verify.claims.label import ASSIGNMENT
from labeldp_verify.decode.file import MAX_PAIRS, WindowFile
from labeldp_verify.forms import (
    CategoricalDomain,
    GroupedWindows,
    Groups,
    IntegerDomain,
    Integers,
    WindowRandomizer,
)
from labeldp_verify.forms.randomizers import Segment
from labeldp_verify.graph import BucketGrid, write_model
from labeldp_verify.usefulness.shortcomings import ONE_OUTPUT

from labeldp_compile.build.certificate import build_certificate
from labeldp_compile.mechanisms.mechanism import DualBound
from labeldp_compile.prior.priors import TablePrior
from labeldp_compile.rounding.randomized_response import randomized_response
from verifier.tests.analysed import realised_ratio
from verifier.tests.files import (
    DOMAIN,
    certificate_of,
    file_of,
    run,
    swapped,
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


CONSTANTS = {
    "T of another group": ("base_totals", swapped(0)),
    "T of the others": ("base_totals", swapped(2)),
    "T moved": ("base_totals", moved(0, 1)),
    "T of 0": ("base_totals", moved(3, -512)),
    "an offset": ("moves", moved(1, 1)),
    "an offset far away": ("moves", moved(1, 2**40)),
    "a window of another group": ("moves", moved(3, 700)),
    "a base line of another group": ("moves", moved(8, -100)),
    "a base line in the extra lines": ("moves", moved(0, 3000)),
    "before the lines": ("moves", moved(0, -1)),
    "moves of two rows": ("moves", swapped(1)),
    "moves of two groups": ("moves", swapped(7)),
    "the width of a group": ("moves_per_group", moved(0, 2)),
    "no width": ("moves_per_group", moved(0, -8)),
    "an entry of the grid": ("grid", moved(5, 1)),
    "entries of the grid": ("grid", lambda a: a[::-1]),
    "a segment of another group": ("grid", moved(0, 2**12)),
    "a shorter grid": ("grid", lambda a: a[:-1]),
    "a longer grid": ("grid", lambda a: np.append(a, a[-1])),
    "values of two groups": ("segment_values", lambda a: a[::-1]),
    "a value": ("segment_values", lambda a: a + 1.0),
    "a value fewer": ("segment_values", lambda a: a[:-1]),
    "the word": ("word_shift", moved(0, 1)),
    "fewer moves": ("moves", lambda a: a[:-8]),
    "more moves": ("moves", lambda a: np.append(a, a[-8:])),
    "fewer tables": ("base_totals", lambda a: a[:-1]),
    "more tables": ("base_totals", lambda a: np.append(a, a[-1:])),
}


@pytest.mark.parametrize("name", sorted(CONSTANTS))
def test_changed_constants(name):
    model = file_of(DOMAIN, grouped())
    constant, change = CONSTANTS[name]
    mutant = with_constant(model, constant, change)
    assert mutant != model
    assert not check_bytes(mutant).ok


@pytest.mark.parametrize(
    "change", [swapped(0), moved(0, 1), moved(3, -1), lambda a: a[:-1], lambda a: a * 0 + 50]
)
def test_changed_sizes_of_words(change):
    windows = tuple(some_windows(bits)[i] for i, bits in enumerate((10, 13, 11, 12)))
    model = file_of(DOMAIN, replaced(grouped(), windows=windows))
    assert check_bytes(model).ok
    mutant = with_constant(model, "word_shifts", change)
    assert mutant != model
    assert not check_bytes(mutant).ok


def mapped(model, change):
    """The file with other attributes of the node that maps groups."""
    proto = onnx.load_from_string(model)
    (node,) = (n for n in proto.graph.node if n.output[0] == "group_found")
    change({attribute.name: attribute for attribute in node.attribute}, node)
    return proto.SerializeToString(deterministic=True)


MAPS = {
    "others to the first group": lambda a, n: setattr(a["default_int64"], "i", 0),
    "others to a table that does not exist": lambda a, n: setattr(a["default_int64"], "i", 4),
    "others to the end, counted from behind": lambda a, n: setattr(a["default_int64"], "i", -1),
    "two groups to one table": lambda a, n: a["values_int64s"].ints.__setitem__(1, 0),
    "a gap": lambda a, n: a["values_int64s"].ints.__setitem__(2, 3),
    "tables exchanged": lambda a, n: a["values_int64s"].ints.extend(
        [a["values_int64s"].ints.pop(0)]
    ),
    "a group twice": lambda a, n: (
        a["keys_int64s"].ints.append(7),
        a["values_int64s"].ints.append(1),
    ),
    "a group left out": lambda a, n: (a["keys_int64s"].ints.pop(), a["values_int64s"].ints.pop()),
    "the label as group": lambda a, n: n.input.__setitem__(0, "label"),
}


@pytest.mark.parametrize("name", sorted(MAPS))
def test_hostile_maps(name):
    model = file_of(DOMAIN, grouped())
    mutant = mapped(model, MAPS[name])
    assert mutant != model
    assert not check_bytes(mutant).ok


def test_groups_that_are_numbered_need_no_map_and_have_their_own_hostile_ones():
    model = file_of(DOMAIN, grouped((0, 1, 2)))
    assert check_bytes(model).ok
    for by in (1, -1):
        assert not check_bytes(with_constant(model, "group_end", moved(0, by))).ok


def test_a_group_that_only_looks_like_a_listed_one_is_another():
    randomizer = grouped(("é", "a", "Ａ"))
    model = file_of(DOMAIN, randomizer)
    assert check_bytes(model).ok
    words = np.arange(1024, dtype=np.uint64) << np.uint64(54)
    labels = np.full(1024, 10)

    def outputs(value):
        return run(model, labels, words, np.full(1024, value, dtype=object))

    others = outputs("not listed")
    for value in ("e\u0301", "a ", "A", "é\u200b", ""):
        assert outputs(value) == others
    assert outputs("é") != others
    both = grouped(("é", "e\u0301", "e"))  # two groups, by the rule
    assert check_bytes(file_of(DOMAIN, both)).ok


def test_zero_one_loss_and_categories_by_group():
    domain = CategoricalDomain(("r", "g", "b"), "g")
    rr = randomized_response(domain.values, range(3), Fraction(1), 20)
    blunt = randomized_response(("g",), [0, 0, 0], Fraction(1), 20)
    randomizer = GroupedWindows(Groups.of((0, 1)), (rr, blunt, rr))
    report = check_bytes(file_of(domain, randomizer, Fraction(1), "zero_one"))
    assert report.ok, report.checks
    assert report.certificate.exact.largest_bias is None
    assert report.certificate.outputs == 3


def test_a_table_of_other_values_than_the_labels_is_refused():
    certificate = certificate_of(file_of(DOMAIN, grouped()))
    words = randomized_response(("a", "b"), [0, 0, 1, 1], Fraction(1), 10)
    codes = WindowRandomizer(10, (1024,), (), (0,) * 4, (7,))
    split = WindowRandomizer(10, (512, 512), (Segment(1, 0),), (1,) * 4, (2.0, 1.0))
    for bad in (words, codes, split):
        windows = (*some_windows()[:3], bad)
        try:
            model = forged(replaced(grouped(), windows=windows), certificate)
        except Exception:  # the writer refuses it, too
            continue
        assert not check_bytes(model).ok


def test_checking_many_groups_has_a_budget_before_it_begins():
    randomizer = GroupedWindows(
        Groups.of(tuple(range(600))), (randomized_response([11.5], [0] * 4, Fraction(1), 8),) * 601
    )
    model = file_of(DOMAIN, randomizer)
    assert check_bytes(model).ok
    with pytest.raises(TooLargeError, match="2,404 labels of 601 groups"):
        check_bytes(model, budget=Budget(0.25, 2 * 10**9))


@pytest.mark.parametrize("count", [3, 600])
def test_every_table_is_run_at_its_own_thresholds(count):
    windows = tuple(some_windows(20 + i % 3)[i % 4] for i in range(count + 1))
    groups = Groups.of(tuple(range(count)))
    grouped = GroupedWindows(groups, windows)
    form = WindowFile(grouped, BucketGrid(0, 0), windows, groups)
    rows, words = form.critical_words()
    assert len(rows) <= MAX_PAIRS
    assert set((rows // 4).tolist()) == set(range(count + 1))
    for table in (0, count // 2, count):
        window = windows[table]
        u = words[rows // 4 == table, 0] >> np.uint64(64 - window.word_bits)
        assert {0, window.words - 1, window.base_total - 1} <= set(u.tolist())


def test_the_certificate_reads_and_writes_alike():
    stated = certificate_of(file_of(DOMAIN, grouped()))
    assert parse_certificate(stated).to_json() == stated
    assert stated["groups"]["assignment"] == ASSIGNMENT
