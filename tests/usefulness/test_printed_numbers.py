"""Each number that compile prints of an artifact, from the probabilities of the compiled file."""

import math
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_verify import check_file
from labeldp_verify.analysis.probabilities import matrix
from labeldp_verify.forms import AdditiveRandomizer, sets_of
from labeldp_verify.usefulness.estimates import inverse_of

from labeldp_compile.cli import main
from tests.fixtures.specs import spec

CASES = [
    ("optimal_unbiased", "squared", 6),
    ("optimal_unbiased", "squared", 0.5),
    ("optimal_unbiased, bias: {max: 0.5}", "squared", 2),
    ("rr_on_bins", "absolute", 3),
    ("debiased_rr", "squared", 2),
    ("laplace", "squared", 1),
    ("exponential", "absolute", 2),
    ("randomized_response", "zero_one", 14),
    ("rr_with_prior", "zero_one", 5),
    ("subset_selection", "zero_one", 1),
]
NUMBER = r"([\d.,e+-]*\d)"
LABELS = np.arange(9)
ROWS, REPETITIONS = 1000, 2000


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}, {case[2]}")
def printed(request, tmp_path_factory):
    """What compile prints of a file made from zero-inflated labels, its table, and Pr[o | y]."""
    tmp_path = tmp_path_factory.mktemp("printed")
    mechanism, loss, epsilon = request.param
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(3000) < 0.8, 0, rng.integers(0, 9, 3000))
    pq.write_table(pa.table({"y": labels}), tmp_path / "table.parquet")
    path = tmp_path / "spec.yaml"
    text = spec(
        labels=9,
        name="printed",
        goal="labels",
        loss=loss,
        epsilon=epsilon,
        split={"prior": epsilon / 4, "label": epsilon * 3 / 4},
        prior={"kind": "private", "data": "table.parquet"},
        mechanism=f"{{kind: {mechanism}}}",
    )
    path.write_text(text)
    words = ["compile", str(path), "-o", str(tmp_path), "--verbose"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    table = check_file(tmp_path / "printed.onnx").verified().table(0)
    return result.stderr, table, matrix(table.randomizer, range(9))


def numbers(pattern, text):
    """The numbers of a pattern, in which # stands for each; None if it does not occur."""
    found = re.search(re.escape(pattern).replace(r"\#", NUMBER), text)
    return None if found is None else [float(one.replace(",", "")) for one in found.groups()]


def values_of(randomizer):
    if isinstance(randomizer, AdditiveRandomizer):
        points = range(randomizer.low, randomizer.high + 1)
        return np.array([float(randomizer.value(point)) for point in points])
    return np.array([float(value) for value in randomizer.values])


def test_privacy_and_belief(printed):
    text, _, rows = printed
    ratio = (rows.max(axis=0) / rows.min(axis=0)).max()
    assert math.log(ratio) <= numbers("ε per label       # (proved", text)[0] * (1 + 1e-9)
    for before in (0.01, 0.1, 0.5):
        (after,) = numbers(f"a guess that was {before:.0%} likely can rise to #% at most", text)
        assert ratio * before / (1 + (ratio - 1) * before) <= after / 100 <= 1


def test_loss_bias_and_distance_from_the_least(printed):
    text, table, rows = printed
    weights = np.array(table.certificate.prior.weights, dtype=float)
    prior, loss = weights / weights.sum(), table.certificate.utility.loss
    if sets_of(table.randomizer) is not None:
        return  # of sets, the least noise: tests/verify/test_sets.py
    apart = values_of(table.randomizer)[None, :] - LABELS[:, None]
    each = {"squared": apart**2 / 2, "absolute": abs(apart), "zero_one": apart != 0}[loss]
    (stated,) = numbers("noisy label loss  #", text)
    assert prior @ (rows * each).sum(axis=1) == pytest.approx(stated, rel=1e-5)
    biases = abs((rows * apart).sum(axis=1))
    assert biases.max() <= numbers("largest bias      #", text)[0] + 1e-9
    least = numbers("least possible    #", text)
    if least is not None and "bias:" not in table.certificate.mechanism:
        above = numbers("), at most (1 + #)", text)
        factor = 1 + above[0] if above else (numbers("), at most #", text) or [1])[0]
        assert least[0] <= stated * (1 + 1e-5) <= factor * least[0] * (1 + 2e-5)


def test_one_private_label(printed):
    text, table, rows = printed
    sets = sets_of(table.randomizer)
    if table.certificate.utility.loss == "zero_one":
        members = sets.matrix if sets else values_of(table.randomizer) == LABELS[:, None]
        each = (rows * members).sum(axis=1)
        shown = numbers("probability # to #", text) or numbers("probability #", text) * 2
        assert shown[1] < 1
    elif table.usefulness.unbiased:
        means, squares = (rows @ values_of(table.randomizer) ** power for power in (1, 2))
        each = np.sqrt(squares - means**2)
        shown = numbers("standard deviation # to #", text)
        shown = shown or numbers("standard deviation #", text) * 2
    else:
        return
    assert shown == pytest.approx([each.min(), each.max()], rel=1e-2)


def test_margins_hold_for_every_label(printed):
    text, table, rows = printed
    classes = table.certificate.utility.loss == "zero_one"
    answers, truth = inverse_of(table.domain, table.randomizer)[1], np.eye(9)
    if not classes:
        truth = LABELS[:, None]
        if table.usefulness.unbiased:
            answers = values_of(table.randomizer)[:, None]
        elif answers is not None:
            answers = answers @ truth
    margin = numbers(f"of {ROWS:,} rows: at most ±# (95%)", text)
    assert (margin is None) == (answers is None)
    if margin is None:
        return
    noise = np.random.default_rng(2)
    for y, row in enumerate(rows):
        counts = noise.multinomial(ROWS, row / row.sum(), REPETITIONS)
        off = abs(counts @ answers / ROWS - truth[y])
        # 5%, and five standard deviations of this share
        assert (off > margin[0]).mean(axis=0).max() <= 0.05 + 5 * math.sqrt(0.05 / REPETITIONS)
    more = numbers("any labels      at least #", text)
    if more and not classes:  # the labels' variance is at most 4²
        least = (rows @ answers**2 - (rows @ answers) ** 2).min()
        assert more[0] <= 1 + least / 16 + 1e-9
