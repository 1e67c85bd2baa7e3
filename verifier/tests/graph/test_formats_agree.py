"""The graphs of format 1.4 answer as those of the formats before it: every word at a small B."""

import json
import random
from fractions import Fraction

import numpy as np
import onnx
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.forms import (
    CategoricalDomain,
    IntegerDomain,
    JointDomain,
    RealDomain,
    TableRandomizer,
)
from labeldp_verify.forms.joint import output_values
from labeldp_verify.graph import write_model
from labeldp_verify.graph.bucket_grid import BucketGrid
from labeldp_verify.graph.nodes import DOUBLE, INT32

from verifier.tests.files import all_words, file_of, session_of
from verifier.tests.integers import random_additive, random_table, response, top_k

B = 11
REALS = [-9.0, -1.0, -0.1, 0.0, 0.2, 0.25, 0.5, 0.77, 1.0, 7.0, float("nan"), float("inf")]
DOMAINS = {
    "integers": (IntegerDomain(-2, 2), [-(2**63), -9, *range(-3, 4), 2**53 + 1, 2**63 - 1]),
    "integers with a default": (IntegerDomain(0, 4, 3), [-1, 0, 1, 2, 3, 4, 5, 2**63 - 1]),
    "reals": (RealDomain(0.0, 1.0, 5), REALS),
    "reals with a default": (RealDomain(0.0, 1.0, 5, default=0.5), REALS),
    "rounded at random": (RealDomain(-1.0, 1.0, 5, "unbiased"), REALS),
    "text": (CategoricalDomain(("a", "b", "c", "d", "e"), "b"), ["a", "c", "e", "", "x"]),
    "codes": (CategoricalDomain((7, -2, 2**60, 0, 1), 0), [7, 2**60, 1, 99, -2]),
}


def lines(randomizer):
    """Grids of one, two and, where there is room, three widths."""
    yield None
    yield BucketGrid(0, 0)
    yield BucketGrid(1, 0)
    yield BucketGrid(0, 2)
    edges = randomizer.boundaries()
    for far in edges[len(randomizer.base) + 1 : -1][:2]:
        yield BucketGrid(0, 1, 0, far)


def models(domain, randomizer, grid=None):
    stated = ("1.0", "1.4")
    return [write_model(domain, randomizer, {"format_version": v}, grid) for v in stated]


def both(domain, randomizer, labels, words, grid=None):
    """The outputs of both formats, one after the other, in bytes or texts."""
    kind = np.float64 if isinstance(domain, RealDomain) else np.int64
    text = isinstance(domain, CategoricalDomain) and domain.is_text
    label = np.repeat(np.array(labels, object if text else kind), len(words))
    entropy = np.tile(words, (len(labels),) + (1,) * (words.ndim - 1))
    feed = {"label": label, "entropy": entropy}
    outputs = [session_of(m).run(None, feed)[0] for m in models(domain, randomizer, grid)]
    return [list(map(repr, column.tolist())) for column in outputs]


def with_rounding(words, domain):
    if domain.words_per_label == 1:
        return words
    own = np.random.default_rng(3).integers(0, 2**64, len(words), np.uint64)
    return np.column_stack([words, own])


@pytest.mark.parametrize("name", DOMAINS)
def test_windows(name):
    domain, labels = DOMAINS[name]
    values = output_values(domain)
    words = with_rounding(all_words(B), domain)
    grids = 0
    for randomizer in (
        response(values, range(5), Fraction(2), B),
        top_k(values, [1, 3, 4], Fraction(3, 2), B),
    ):
        for grid in lines(randomizer):
            try:
                old, new = both(domain, randomizer, labels, words, grid)
            except ValueError:  # a bucket with two boundaries
                continue
            assert old == new
            assert len(set(new)) > 1
            grids += 1
    assert grids >= 6


@pytest.mark.parametrize("name", [name for name in DOMAINS if name not in ("text", "codes")])
@pytest.mark.parametrize("seed", range(4))
def test_additive_noise(name, seed):
    domain, labels = DOMAINS[name]
    randomizer = random_additive(random.Random(seed), 5, 1 + seed % 3, 2, 8)
    pairs = np.column_stack([np.repeat(all_words(8), 256), np.tile(all_words(8), 256)])
    words = pairs[np.random.default_rng(seed).permutation(len(pairs))[:8_000]]
    if domain.words_per_label == 2:
        own = np.random.default_rng(3).integers(0, 2**64, len(words), np.uint64)
        words = np.column_stack([words, own])
    old, new = both(domain, randomizer, labels, words)
    assert old == new and len(set(new)) > 5


def test_which_nodes_there_are():
    """No Where but in the label's part; rows are int32 or float64 where that is cheaper."""
    for name, (domain, _) in DOMAINS.items():
        randomizer = response(output_values(domain), range(5), Fraction(3), 12)
        graph = onnx.load_from_string(models(domain, randomizer, BucketGrid(0, 3))[1]).graph
        conditions = {n.input[0] for n in graph.node if n.op_type == "Where"}
        assert conditions <= {"not_below", "inside"}
        to = [n.attribute[0].i for n in graph.node if n.output[0] == "row" and n.op_type == "Cast"]
        in_float64 = name == "integers" or isinstance(domain, RealDomain)
        assert to == ([INT32] if in_float64 else [])
    graph = onnx.load_from_string(
        models(IntegerDomain(0, 4), random_additive(random.Random(1), 5, 1, 2, 8))[1]
    ).graph
    assert "Where" not in {n.op_type for n in graph.node}
    kinds = {t.name: t.data_type for t in graph.initializer}
    assert kinds["low"] == kinds["high"] == kinds["spacing"] == DOUBLE


def test_tables_stay_in_their_format():
    domain, table = IntegerDomain(0, 4), random_table(random.Random(1), 5, (0.0, 1.0, 2.0), 8)
    assert isinstance(table, TableRandomizer)
    honest = file_of(domain, table)
    (stated,) = (
        json.loads(p.value)
        for p in onnx.load_from_string(honest).metadata_props
        if p.key == "labeldp.certificate"
    )
    assert stated["format_version"] == "1.0" and check_bytes(honest).ok
    assert not check_bytes(write_model(domain, table, stated | {"format_version": "1.4"})).ok


def test_several_columns_agree():
    domain = JointDomain.of([IntegerDomain(0, 2), CategoricalDomain(("a", "b"), "a")])
    randomizer = response(list(range(6)), range(6), Fraction(2), B)
    words = all_words(B)
    feed = {
        "label_1": np.resize(np.arange(-1, 4), len(words)),
        "label_2": np.resize(np.array(["a", "b", "c"], object), len(words)),
        "entropy": words,
    }
    found = []
    for version in ("1.3", "1.4"):
        model = write_model(domain, randomizer, {"format_version": version})
        found.append([column.tolist() for column in session_of(model).run(None, feed)])
    assert found[0] == found[1]


def test_a_file_of_the_older_format_still_verifies():
    for randomizer in (
        response(output_values(DOMAINS["integers"][0]), range(5), Fraction(2)),
        random_additive(random.Random(2), 5, 1, 2, 24, -2.0),
    ):
        domain = DOMAINS["integers"][0]
        model = onnx.load_from_string(file_of(domain, randomizer, Fraction(40)))
        stated = {entry.key: entry.value for entry in model.metadata_props}
        certificate = json.loads(stated["labeldp.certificate"])
        assert certificate["format_version"] == stated["labeldp.format_version"] == "1.4"
        for version in ("1.0", "1.4"):
            stated = {**certificate, "format_version": version}
            assert check_bytes(write_model(domain, randomizer, stated)).ok
