"""Ranges of real life: skewed numbers on listed grids, and a rule for nulls."""

import json
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_runtime import LabelError, Randomizer
from labeldp_verify import check_file
from labeldp_verify.analysis import analyse
from labeldp_verify.analysis.probabilities import matrix
from labeldp_verify.forms import GridDomain

from labeldp_compile import compile_spec
from labeldp_compile.cli import main
from labeldp_compile.errors import InputError, SpecError
from labeldp_compile.spec import load_spec, parse_spec
from labeldp_compile.spec.agreement import check_file as check_with_spec
from tests.fixtures.specs import spec

GEOMETRIC = "{kind: real, min: -20000, max: 50000, grid: {kind: geometric, points: 32, finest: 10}}"
POINTS = "{kind: real, grid: {kind: points, values: [-10, 0, 0.5, 2, 30]}}"


def labeldp(*words):
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exit_code == 0, done.stderr
    return done


def spec_text(domain, *, prior="uniform", mechanism="auto", goal="training", **changes):
    parts = {"prior": 0.1, "label": 0.9} if "private" in prior else None
    changes |= {"domain": domain, "prior": prior, "mechanism": mechanism, "goal": goal}
    return spec(name="orders", column="amount", split=parts, **changes)


def compiled(folder, text):
    path = folder / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    return compile_spec(path).write(folder, overwrite=True), path


@pytest.mark.parametrize("mechanism", ["optimal_unbiased", "debiased_rr"])
def test_any_number_of_the_range_keeps_its_mean_on_an_uneven_grid(tmp_path, mechanism):
    path, _ = compiled(tmp_path, spec_text(POINTS, mechanism=mechanism))
    artifact = check_file(path).artifact
    table = artifact.only
    domain = table.domain
    assert isinstance(domain, GridDomain) and domain.rounding == "unbiased"
    means = analyse(table.randomizer).means()
    for number in (-10.0, -7.3, 0.0, 0.1, 0.5, 1.75, 29.0, 30.0):
        (below,), (share,) = domain.cells(np.array([number]))
        above = min(below + 1, domain.size - 1)
        up = Fraction(float(share))
        mean = (1 - up) * means[below] + up * means[above]
        assert abs(mean - Fraction(number)) < 1e-9
    assert artifact.certificate.parts["grid"].widest_step == 28


@pytest.mark.parametrize(
    "mechanism", ["rr_on_bins", "randomized_response", "rr_with_prior", "exponential"]
)
def test_the_loss_is_that_of_the_numbers_themselves(tmp_path, mechanism):
    path, spec = compiled(tmp_path, spec_text(POINTS, mechanism=mechanism, goal="labels"))
    report = check_with_spec(path, spec)
    assert report.ok, report
    table = report.artifact.only
    values = table.domain.values
    outputs = np.array(table.randomizer.values, float)
    squares = (outputs[None, :] - np.array(values)[:, None]) ** 2 / 2
    losses = (matrix(table.randomizer, range(len(values))) * squares).sum(axis=1)
    assert report.certificate.utility.noisy_label_loss == pytest.approx(losses.mean())


def test_a_geometric_grid_is_fine_near_0_and_coarse_far_from_it():
    domain = parse_spec(spec_text(GEOMETRIC)).domain
    assert {-20000.0, 0.0, 10.0, 50000.0} <= {*domain.values} and domain.size == 32
    above = [value for value in domain.values if value > 0]
    ratios = [high / low for low, high in pairwise(above)]
    assert max(ratios) - min(ratios) < 1e-4 and domain.widest_step > 10_000


@pytest.mark.parametrize(
    ("domain", "reason"),
    [
        ("{kind: real, grid: {kind: points, values: [0, 2, 1]}}", "must increase"),
        (
            "{kind: real, min: 1, max: 9, grid: {kind: geometric, points: 9, finest: 1}}",
            "remove it",
        ),
        ("{kind: real, min: 1, max: 1.00001, grid: {kind: geometric, points: 99}}", "fewer points"),
    ],
)
def test_a_wrong_grid_says_what_to_write(domain, reason):
    with pytest.raises(SpecError, match=reason):
        parse_spec(spec_text(domain))


@pytest.mark.parametrize("mechanism", ["laplace", "staircase"])
def test_noise_in_even_steps_needs_an_even_grid(mechanism):
    with pytest.raises(SpecError, match="not evenly spaced"):
        parse_spec(spec_text(POINTS, mechanism=mechanism))


@pytest.fixture
def orders(tmp_path):
    """Skewed orders, of which some have no label."""
    rng = np.random.default_rng(3)
    amounts = np.round(np.exp(rng.normal(8, 0.9, 2000)), 2)
    nulls = rng.random(2000) < 0.1
    table = pa.table({"id": np.arange(2000), "amount": pa.array(amounts, mask=nulls)})
    pq.write_table(table, tmp_path / "orders.parquet")
    pq.write_table(pa.table({"sale": amounts[:500] * 1.1}), tmp_path / "public.parquet")
    return tmp_path, nulls


def test_quantiles_come_from_a_public_file_and_never_from_the_labels(orders):
    folder, _ = orders
    grid = "grid: {kind: quantile-of-public, data: %s, column: %s, points: 9}"
    domain = f"{{kind: real, min: -20000, max: 50000, {grid}}}"
    prior = "{kind: private, data: orders.parquet}"
    path = folder / "spec.yaml"
    path.write_text(spec_text(domain % ("public.parquet", "sale"), prior=prior), "utf-8")
    values = load_spec(path)[0].domain.values
    assert values[0] == -20000 and values[-1] == 50000 and len(values) == 9
    sales = pq.read_table(folder / "public.parquet")["sale"].to_numpy()
    assert np.searchsorted(np.sort(sales), values[4]) == pytest.approx(250, abs=3)
    for data, column in [("orders.parquet", "id"), ("public.parquet", "amount")]:
        path.write_text(spec_text(domain % (data, column), prior=prior), "utf-8")
        with pytest.raises(InputError, match="label"):
            load_spec(path)


def test_nulls_become_the_label_of_their_own_rule(tmp_path):
    path, spec = compiled(tmp_path, spec_text(GEOMETRIC, nulls="{default: 0}"))
    assert check_with_spec(path, spec).ok
    randomizer = Randomizer.load(path)
    words = np.random.default_rng(0).integers(0, 2**64, (400, 2), np.uint64)
    zero = randomizer.apply_words([0.0] * 400, words)
    for missing in (None, float("nan"), "n/a", object()):
        assert np.array_equal(randomizer.apply_words([missing] * 400, words), zero)
    least = randomizer.apply_words([-1e9] * 400, words)
    assert not np.array_equal(least, zero)  # numbers beyond the range are clamped, as before


def test_a_null_category_is_a_category_of_its_own(tmp_path):
    changes = {"nulls": "category", "loss": "zero_one", "out_of_domain": "{default: b}"}
    path, spec = compiled(tmp_path, spec_text("{kind: categorical, values: [a, b]}", **changes))
    assert check_with_spec(path, spec).ok
    certificate = json.loads((tmp_path / "orders.certificate.json").read_text("utf-8"))
    assert certificate["label"]["domain"]["values"] == ["a", "b", "missing"]
    randomizer = Randomizer.load(path)
    words = np.random.default_rng(0).integers(0, 2**64, 300, np.uint64)
    null = randomizer.apply_words(pa.array([None] * 300, pa.string()), words)
    assert list(null) == list(randomizer.apply_words(["missing"] * 300, words))
    unknown = randomizer.apply_words(["elsewhere"] * 300, words)
    assert list(unknown) == list(randomizer.apply_words(["b"] * 300, words))


def test_public_nulls_stay_null_and_the_certificate_says_they_are_not_protected(orders):
    folder, nulls = orders
    prior = "{kind: private, data: orders.parquet}"
    path, spec = compiled(folder, spec_text(GEOMETRIC, nulls="public", prior=prior))
    report = check_with_spec(path, spec)
    assert report.ok and report.certificate.parts["nulls"].pattern == "public"
    assert report.certificate.prior.rows == (~nulls).sum()
    assert "not protected" in next(c.detail for c in report.checks if "null" in c.detail)
    private = folder / "private.parquet"
    told = labeldp("randomize", path, folder / "orders.parquet", "-o", private)
    assert f"{nulls.sum():,} rows have no label, and stay null" in told.stderr
    drawn = pq.read_table(private)["amount"]
    assert np.array_equal(drawn.is_null().to_numpy(), nulls)
    found = json.loads(labeldp("estimate", path, private, "--json").stdout)
    assert found["groups"][0]["rows"] == (~nulls).sum()
    assert found["nulls"] == ["rows without a label are left out"]
    randomizer = Randomizer.load(path)
    with pytest.raises(LabelError, match="nulls: public"):
        randomizer([1.0, None])
    with pytest.raises(LabelError, match="nulls: public"):
        randomizer(pa.chunked_array([[1.0], [None]], pa.float64()))
    assert len(randomizer([1.0, float("nan"), "n/a"])) == 3  # what cannot be read is no null


def test_empty_cells_of_csv_are_nulls_and_unreadable_text_is_not(orders):
    folder, _ = orders
    path, _ = compiled(folder, spec_text(GEOMETRIC, nulls="public"))
    table = folder / "rows.csv"
    table.write_text("id,amount\n1,12.5\n2,\n3,n/a\n4,\n", encoding="utf-8")
    private = folder / "private.csv"
    labeldp("randomize", path, table, "-o", private, "--quiet")
    cells = [line.split(",")[1] for line in private.read_text("utf-8").splitlines()[1:]]
    assert [bool(cell) for cell in cells] == [True, False, True, False]
