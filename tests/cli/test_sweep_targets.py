"""``labeldp sweep --target``: the least ε for a target, bad input, and that no label is read."""

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from labeldp_verify.artifact import Table
from labeldp_verify.opening import open_artifact

from labeldp_compile.spec import load_spec
from labeldp_compile.sweeps import targets
from tests.cli.test_cli import labeldp
from tests.fixtures.blank import without_rows
from tests.fixtures.specs import spec


def numbers(**changes):
    usual = {"domain": "{kind: integer, min: 1, max: 3}", "weights": [9, 8, 7], "goal": "training"}
    return spec(name="visits", column="visits", **(usual | changes))


def private(rows=None, **changes):
    data = {"data": "visits.parquet"} if rows is None else {"data": "visits.parquet", "rows": rows}
    return numbers(weights=None, prior={"kind": "private", **data}, **changes)


@pytest.fixture
def folder(here):
    (here / "numbers.yaml").write_text(numbers(), encoding="utf-8")
    categories = spec(name="health", values=["a", "b", "c"], mechanism="auto")
    (here / "categories.yaml").write_text(categories, encoding="utf-8")
    return here


def chosen(*arguments):
    result = labeldp("sweep", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def with_lines(path, lines):
    """The spec of a file with the keys that ``choose`` gives in the place of its own."""
    text = path.read_text(encoding="utf-8")
    document = yaml.safe_load(text) | yaml.safe_load(lines)
    path.with_name("with-lines.yaml").write_text(
        yaml.safe_dump(document, allow_unicode=True), encoding="utf-8"
    )
    return path.with_name("with-lines.yaml")


def usefulness_with(path, lines):
    """Of the artifact that those lines make, by what its file proves."""
    stated = with_lines(path, lines)
    result = labeldp("compile", stated, "-o", path.parent / "build", "--overwrite", "--quiet")
    assert result.exit_code == 0, result.output
    name = load_spec(stated)[0].name
    decoded = open_artifact(path.parent / "build" / f"{name}.onnx").table(0)
    assert isinstance(decoded, Table)
    return decoded


def test_the_lines_for_the_spec_make_an_artifact_that_is_as_good_as_asked(folder):
    path = folder / "numbers.yaml"
    found = chosen(path, "--target", "mean-error=0.05", "--rows", "10000")
    assert found["mechanism"] == "optimal_unbiased" and found["missed_at"] < found["epsilon"]
    decoded = usefulness_with(path, found["spec"])
    error = decoded.usefulness.margin(10_000)
    assert error <= 0.05
    assert found["candidates"][0]["figures"][0]["value"] == error
    assert decoded.certificate.privacy.epsilon_label == found["epsilon"]
    old, new = (f"epsilon: {found[name]:g}" for name in ("epsilon", "missed_at"))
    assert usefulness_with(path, found["spec"].replace(old, new)).usefulness.margin(10_000) > 0.05


def test_no_other_mechanism_reaches_it_with_less(folder):
    """Against a sweep, which compiles each mechanism, a step of ε below."""
    path = folder / "numbers.yaml"
    found = chosen(path, "--target", "mean-error=0.05", "--rows", "1000")
    swept = labeldp("sweep", path, "--epsilon", f"{found['missed_at']:g}", "--json")
    points = json.loads(swept.stdout)["points"]
    unbiased = {p["mechanism"]: p["margin_all_labels"] for p in points if p["unbiased"]}
    assert set(unbiased) == {c["mechanism"] for c in found["candidates"]}
    assert len(unbiased) > 3 and min(unbiased.values()) > 0.05


def test_categories_take_a_share_error_and_all_targets_hold_at_once(folder):
    path = folder / "categories.yaml"
    share = chosen(path, "--target", "share-error=0.02", "--rows", "10000")
    label = chosen(path, "--target", "label-error=0.1")
    both = chosen(
        path, "--target", "share-error=0.02", "--rows", "10000", "--target", "label-error=0.1"
    )
    assert share["epsilon"] < label["epsilon"] == both["epsilon"]
    # Randomized response over three categories keeps a label with e^ε/(e^ε + 2).
    least = math.log(18)
    assert label["mechanism"] == "randomized_response"
    assert least <= label["epsilon"] < least * 1.001
    decoded = usefulness_with(path, both["spec"])
    assert decoded.usefulness.kept.mean >= 0.9 and decoded.usefulness.margin(10_000) <= 0.02


def test_no_label_is_read(folder):
    labels = np.random.default_rng(0).integers(1, 4, 500)
    pq.write_table(pa.table({"visits": labels}), folder / "visits.parquet")
    path = folder / "private.yaml"
    uniform = numbers(weights=None, prior="uniform")
    (folder / "uniform.yaml").write_text(uniform, encoding="utf-8")
    path.write_text(private(split={"prior": 0.5, "label": 0.5}), encoding="utf-8")
    (folder / "visits.parquet").write_bytes(without_rows(folder / "visits.parquet"))
    asked = ("--target", "mean-error=0.05", "--rows", "10000")
    found, same = chosen(path, *asked), chosen(folder / "uniform.yaml", *asked)
    assert found["epsilon"] == same["epsilon"] and found["prior_is_private"]
    words = labeldp("sweep", path, *asked).stdout
    assert "private, treated as uniform: no label was read" in words
    stated, _ = load_spec(with_lines(path, found["spec"]))
    assert stated.prior.kind == "uniform" and "split: auto" in found["spec"]
    path.write_text(private(rows=10_000), encoding="utf-8")
    assert chosen(path, *asked[:2])["epsilon"] == found["epsilon"]  # n is public


@pytest.mark.parametrize("seed", range(8))
def test_the_root_is_the_first_step_that_will_do(seed):
    """Falling functions of all shapes: powers, exponentials, jumps, and no value at small ε."""
    draw = np.random.default_rng(seed)
    for _ in range(30):
        root, power = int(draw.integers(0, targets.LAST + 1)), draw.uniform(0.1, 5)
        jump, hole = draw.choice([0, 0.5, 5]), int(draw.integers(-1, targets.LAST))
        calls = []

        def excess(step, root=root, power=power, jump=jump, hole=hole, calls=calls):
            calls.append(step)
            if step < min(hole, root):
                return math.inf
            near, here = (float(targets.epsilon_at(s)) for s in (root, step))
            curve = power * math.log(near / here) + max(near, 1) - max(here, 1)
            return curve + jump if step < root else min(curve, 0.0)

        last = int(draw.integers(root, targets.LAST + 1))
        assert targets.first_root(excess, last, {}) == root
        assert len(calls) < 32 and len(calls) == len(set(calls))
        if root:
            assert targets.first_root(excess, root - 1, {}) is None
    assert targets.first_root(lambda step: -1.0, -1, {}) is None
