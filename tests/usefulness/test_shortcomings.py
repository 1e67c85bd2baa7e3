"""Files that are private and worth little: named by every command, refused for training."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_verify import check_bytes, check_file
from labeldp_verify.forms import CategoricalDomain, TableRandomizer
from labeldp_verify.usefulness.shortcomings import relevant

from tests.cli.test_cli import labeldp
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.fixtures.specs import spec
from verifier.tests.files import file_of


def rare(goal):
    prior = {"kind": "private", "data": "table.parquet"}
    return spec(
        values=[0, 1],
        name="clicked",
        goal=goal,
        column="clicked",
        prior=prior,
        mechanism="rr_with_prior",
    )


@pytest.fixture
def place(tmp_path, inside):
    """A 0/1 column with 15 % ones."""
    inside(tmp_path)
    clicked = np.random.default_rng(2).random(20_000) < 0.15
    pq.write_table(pa.table({"clicked": clicked.astype(np.int64)}), "table.parquet")
    return tmp_path


def kinds(path):
    return [found.kind for found in check_file(path).artifact.only.shortcomings]


def test_defaults_on_a_rare_class_tell_labels_apart(place):
    told = ["--kind", "categorical", "--values", "0,1", "--default", "0", "--yes"]
    result = labeldp("init", "table.parquet", "--column", "clicked", *told)
    assert result.exit_code == 0, result.stderr
    result = labeldp("compile", "clicked.yaml", "-o", "build", "--verbose")
    assert result.exit_code == 0 and "randomized_response" in result.stderr
    assert "warning" not in result.stderr
    assert check_file(place / "build/clicked.onnx").artifact.only.randomizer.outputs == 2
    labeldp("randomize", "build/clicked.onnx", "table.parquet", "-o", "private.parquet")
    assert 0.2 < np.mean(pq.read_table("private.parquet")["clicked"].to_numpy()) < 0.5


def test_constant_labels_are_refused_for_training_and_the_prior_is_kept(place):
    (place / "clicked.yaml").write_text(rare("training"))
    result = labeldp("compile", "clicked.yaml", "-o", "build", "--verbose")
    assert result.exit_code == 2
    assert "every label becomes the same output" in result.stderr
    assert "mechanism: {kind: randomized_response}" in result.stderr
    kept = place / "build/clicked.prior.json"
    assert kept.exists() and "build/clicked.prior.json" in result.stderr
    assert not list((place / "build").glob("*.onnx"))
    (place / "clicked.yaml").write_text(rare("training").replace("rr_with_prior", "rr_top_k, k: 2"))
    result = labeldp("compile", "clicked.yaml", "-o", "build", "--verbose")
    assert result.exit_code == 0, result.stderr
    assert "nothing is spent" in result.stderr and not kept.exists()
    assert kinds(place / "build/clicked.onnx") == []


def test_bins_and_unused_budget(place):
    bins = check_bytes(compile_text(INTEGER_SPEC).model).artifact.only
    assert [found.kind for found in bins.shortcomings] == ["told_apart_from_none", "not_estimable"]
    assert re.search(r"10 labels form \d groups", bins.shortcomings[0].text)
    domain = CategoricalDomain(("a", "b"), "a")
    nearly = TableRandomizer(10, ((600, 424), (424, 600)), ("a", "b"))
    model = file_of(domain, nearly, epsilon=2, loss="zero_one")
    (only,) = check_bytes(model).verified().only.shortcomings
    assert only.kind == "unused_epsilon" and "where 2 is declared" in only.text
    good = (
        check_bytes(compile_text(INTEGER_SPEC.replace("rr_on_bins", "optimal_unbiased")).model)
        .verified()
        .only
    )
    assert good.shortcomings == []


def test_names_of_categories_are_shown_and_not_obeyed(place):
    hostile = ("a", "\x1b[2J\u202e", "c\n\nok")
    domain = CategoricalDomain(hostile, "a")
    r = TableRandomizer(10, ((1023, 1), (1, 1023), (1, 1023)), ("a", "b"))
    decoded = check_bytes(file_of(domain, r, epsilon=8, loss="zero_one")).verified().only
    assert decoded.shortcomings[0].kind == "never_an_output"
    assert all(c.isprintable() for found in decoded.shortcomings for c in found.text)


def test_labels_that_say_hardly_more_than_a_constant():
    ten = INTEGER_SPEC.replace("loss: squared", "loss: squared\ngoal: labels")
    noisy = compile_text(ten.replace("epsilon: 1.0", "epsilon: 0.05"))
    decoded = check_bytes(noisy.model).verified().only
    found = [one for one in decoded.shortcomings if one.kind == "like_a_constant"]
    assert len(found) == 1 and "say little more than the constant" in found[0].text
    assert found[0].for_labels_only and found[0] in relevant(decoded.shortcomings, "labels")
    assert found[0] not in relevant(decoded.shortcomings, "training")
    assert found[0] in relevant(decoded.shortcomings, None)
    use = decoded.usefulness
    assert 0.95 * use.constant <= use.distance.mean <= use.constant * (1 + 1e-9)
    assert f"{use.constant:.3g} for the best constant" in " ".join(decoded.use_in_words())
    clear = check_bytes(compile_text(ten.replace("epsilon: 1.0", "epsilon: 4")).model).artifact.only
    assert "like_a_constant" not in [one.kind for one in clear.shortcomings]
    unbiased = check_bytes(
        compile_text(ten.replace("rr_on_bins", "optimal_unbiased")).model
    ).require()
    assert "like_a_constant" not in [one.kind for one in unbiased.artifact.only.shortcomings]
    assert "standard deviation " in " ".join(unbiased.artifact.only.use_in_words())


@pytest.mark.parametrize(
    ("loss", "epsilon", "warned"),
    [("{quantile: 0.9}", 2, False), ("{quantile: 0.9}", 0.5, True), ("absolute", 0.5, True)],
)
def test_a_constant_is_judged_by_the_loss_of_the_spec(loss, epsilon, warned):
    """A quantile is meant to be off, further than the best constant in squares."""
    text = INTEGER_SPEC.replace("loss: squared", f"loss: {loss}\ngoal: labels")
    one = check_bytes(compile_text(text.replace("epsilon: 1.0", f"epsilon: {epsilon}")).model)
    decoded = one.verified().only
    found = [each.text for each in decoded.shortcomings if each.kind == "like_a_constant"]
    use, size = decoded.usefulness, decoded.domain.size
    assert use.distance.mean > 0.95 * use.constant and len(found) == warned
    labels, weights = range(size), np.array(decoded.certificate.prior.weights)
    under = 0.9 if "quantile" in loss else 1
    over = 1.0 - under or 1
    losses = [
        weights @ [under * max(y - c, 0) + over * max(c - y, 0) for y in labels] for c in labels
    ]
    if warned:
        least = min(losses) / weights.sum()
        assert f"and a constant {least:.3g}." in found[0] and "have a loss of" in found[0]
