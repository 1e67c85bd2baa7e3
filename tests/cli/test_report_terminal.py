"""``labeldp report``: the matrix it shows is the one that the integers define, word by word."""

import json
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from labeldp_verify.analysis.probabilities import (
    columns,
    equally_likely,
    matrix,
    noise_quantiles,
    row,
    value,
)
from labeldp_verify.forms import (
    AdditiveRandomizer,
    IntegerDomain,
    TableRandomizer,
)
from labeldp_verify.graph import write_model
from labeldp_verify.opening import open_artifact

from tests.cli.test_cli import labeldp
from tests.fixtures.specs import compile_anew, spec
from verifier.tests.integers import plain_counts

BITS = 9
WEIGHTS = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
MECHANISMS = {
    "window, bins": "rr_on_bins",
    "window, unbiased": "optimal_unbiased",
    "window, top": "{kind: rr_top_k, k: 3}",
    "table": "exponential",
    "additive": "laplace",
    "additive, clipped": "{kind: staircase, clip: true, lattice: 0.5}",
}


def shown(path, *options, **environment):
    """What the command prints, and as JSON if that was asked."""
    done = labeldp("report", path, *options, env=environment)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout) if "--json" in options else done.stdout


@pytest.fixture
def written(tmp_path):
    """``written(**changes)``: an artifact with few random bits, and its file."""

    def write(bits=BITS, **changes):
        artifact = compile_anew(spec(**{"weights": WEIGHTS, **changes}), word_bits=bits)
        path = tmp_path / "artifact.onnx"
        path.write_bytes(artifact.model)
        return artifact.randomizer, path

    return write


def counted(randomizer, y):
    """How many words of a label lead to each output value, by definition."""
    if isinstance(randomizer, TableRandomizer):
        return Counter(dict(zip(randomizer.values, randomizer.counts[y], strict=True)))
    if not isinstance(randomizer, AdditiveRandomizer):
        return plain_counts(randomizer, y)
    r, counts = randomizer, Counter()
    for b, i in product(range(len(r.blocks)), range(r.period)):
        block = b - r.reach - 1
        point = y * r.spacing + block * r.period + i
        point = min(max(point, r.low), r.high)
        counts[r.value(point)] += r.blocks[b] * r.shapes[int(block >= 0)][i]
    return counts


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_matrix_is_the_one_that_the_words_define(written, name):
    r, path = written(mechanism=MECHANISMS[name])
    document = shown(path, "--json")
    assert document["ok"] is True and document["matrix"]["exact"] is True
    values = [facts["value"] for facts in document["outputs"]]
    total, floats = equally_likely(r), matrix(r, range(10))
    assert document["matrix"]["labels"] == list(range(10))
    for y, (probabilities, facts) in enumerate(
        zip(document["matrix"]["rows"], document["labels"], strict=True)
    ):
        exact = counted(r, y)
        counts = row(r, y)
        assert sum(counts) == total
        assert [Fraction(p) for p in probabilities] == [Fraction(exact[v], total) for v in values]
        p = np.array([exact[v] / total for v in values])
        np.testing.assert_allclose(floats[y], p, rtol=1e-13)
        mean = p @ np.array(values)
        assert facts["mean"] == pytest.approx(mean, abs=1e-9)
        assert facts["bias"] == pytest.approx(mean - y, abs=1e-9)
        deviation = np.sqrt(p @ (np.array(values) - mean) ** 2)
        assert facts["deviation"] == pytest.approx(deviation, rel=1e-6)
        assert facts["unchanged"] == pytest.approx(exact[y] / total, rel=1e-12)
        if r.form == "window":
            window = facts["window"]
            assert window["end"] - window["start"] == r.window
            added = Counter({part["output"]: part["words"] for part in window["outputs"]})
            assert [b + added[i] for i, b in enumerate(r.base)] == list(counts)
    for i, facts in enumerate(document["outputs"]):
        np.testing.assert_allclose(next(columns(r, [i])), floats[:, i], rtol=1e-13)
        assert facts["least"] == pytest.approx(floats[:, i].min(), rel=1e-13)
        assert facts["most"] == pytest.approx(floats[:, i].max(), rel=1e-13)
        assert (facts["base"] is not None) == (r.form == "window")


def test_the_noise_of_an_additive_randomizer(written):
    r, path = written(mechanism="laplace")
    noise, total = Counter(), equally_likely(r)
    for b, i in product(range(len(r.blocks)), range(r.period)):
        block = b - r.reach - 1
        noise[block * r.period + i] += r.blocks[b] * r.shapes[int(block >= 0)][i]
    stated = shown(path, "--json")["noise"]
    for name, power in (("mean_distance", 1), ("deviation", 2)):
        moment = sum(abs(n) ** power * w for n, w in noise.items()) / total
        assert stated[name] == pytest.approx(moment ** (1 / power))
    for share, limit in zip((0.3, 0.9), noise_quantiles(r, (0.3, 0.9)), strict=True):
        within = sum(w for n, w in noise.items() if abs(n) <= limit) / total
        closer = sum(w for n, w in noise.items() if abs(n) < limit) / total
        assert closer < share <= within
    (point,) = r.points_of(Fraction(3))
    assert value(r, point - r.low) == 3.0 and not r.points_of(Fraction(1, 3))


def test_nothing_is_shown_of_a_file_that_does_not_verify(written, tmp_path):
    randomizer, path = written()
    certificate = {**open_artifact(path).certificate.to_json(), "labels": 11}
    forged = write_model(IntegerDomain(0, 9), randomizer, certificate)
    for data in (forged, b"junk"):
        path.write_bytes(data)
        result = labeldp("report", path)
        assert result.exit_code == 1 and result.stdout == ""
        result = labeldp("report", path, "--json")
        document = json.loads(result.stdout)
        assert result.exit_code == 1 and document["ok"] is False and document["failed"]
