"""Runs of ``staged_release``, and of the same model without noise and on private labels."""

import functools
import json

import onnx
import onnxruntime
import pyarrow.parquet as pq
import pytest
from labeldp_trainer import parse_config, train
from labeldp_trainer.export.onnx.model import check, onnx_model
from labeldp_trainer.outcomes.predict import open_trained, predict_file
from labeldp_trainer.outcomes.verified_release import verify_release
from labeldp_trainer.staged_release.release import ReleaseInStages, read_staged

from labeldp_compile.errors import InputError
from trainer.tests.interactions.tables_helpers import (
    CLASSES,
    CONFIG,
    COUNTS,
    DATES,
    USERS,
    some_table,
    write,
)
from trainer.tests.trainer_helpers import compile_text

TEXTS = {
    "numbers": CONFIG,
    "dates": DATES,
    "classes": CLASSES,
    "counts": COUNTS,
    "users": USERS,
}
FILE = "release.npz"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def trained(place):
    """``trained(name)``: the folder of a run of this config."""

    @functools.cache
    def folder(name):
        return train(loaded(place, name), place / name).folder

    return folder


EVERY = [
    pytest.param(name, marks=() if name in ("dates", "classes") else pytest.mark.slow)
    for name in TEXTS
]


def loaded(place, name):
    return parse_config(TEXTS[name], f"{name}.yaml", place)


def first_parts(release, count):
    facts = release.facts.model_copy(update={"parts": release.facts.parts[:count]})
    return ReleaseInStages(facts, release.columns, release.parts[:count])


@pytest.mark.parametrize("name", EVERY)
def test_an_interaction_is_learned_that_no_sum_of_columns_has(trained, name):
    result = json.loads((trained(name) / "result.json").read_text())
    metric = "loss" if name in ("counts", "classes") else "mse"
    # y and most of colour are decided by the sign of a·b, of which neither column tells anything
    constant = result["baselines"]["constant"][metric]
    assert result["test"][metric] < constant - 0.15 * abs(constant)


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_a_release_is_verified_and_replayed_from_features_alone(place, trained, tmp_path, name):
    table = pq.read_table(place / "train.parquet").drop_columns(["y", "colour"])
    pq.write_table(table, tmp_path / "train.parquet")
    pq.write_table(pq.read_table(place / "test.parquet"), tmp_path / "test.parquet")
    found = verify_release(loaded(tmp_path, name), trained(name) / FILE)
    assert [check.words for check in found if not check.ok] == []
    assert sum("asks what follows" in check.words for check in found) == 4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_a_release_is_fitted_again_bit_by_bit_without_labels(place, trained, tmp_path, name):
    for part in ("train", "test"):
        table = pq.read_table(place / f"{part}.parquet")
        kept = table if part == "test" else table.drop_columns(["y", "colour"])
        pq.write_table(kept, tmp_path / f"{part}.parquet")
    train(loaded(tmp_path, name), tmp_path / "again", release=trained(name) / FILE)
    for file in (FILE, "params.npz"):
        assert (tmp_path / "again" / file).read_bytes() == (trained(name) / file).read_bytes()


@pytest.mark.parametrize(
    "done", [3, *(pytest.param(done, marks=pytest.mark.slow) for done in (0, 1, 2, 4, 5))]
)
def test_what_was_drawn_before_a_kill_is_not_drawn_again(place, tmp_path, done):
    first = train(loaded(place, "numbers"), tmp_path / "run").folder
    release = read_staged(first / FILE)
    for file in ("result.json", "params.npz"):
        (first / file).unlink()
    (first / FILE).write_bytes(first_parts(release, done).to_bytes())
    train(loaded(place, "numbers"), first, resume=True)
    again = read_staged(first / FILE)
    assert again.complete
    assert first_parts(again, done).to_bytes() == first_parts(release, done).to_bytes()
    # what had not been drawn has noise of its own
    assert (again.parts[done].answer != release.parts[done].answer).any()


@pytest.mark.parametrize("name", EVERY)
def test_predictions_and_the_exported_model_agree_on_gaps_and_new_categories(
    trained, tmp_path, name
):
    trained = open_trained(trained(name))
    pq.write_table(some_table(300, 7).drop_columns(["y", "colour"]), tmp_path / "new.parquet")
    predict_file(trained, tmp_path / "new.parquet", tmp_path / "out.parquet")
    found = pq.read_table(tmp_path / "out.parquet")["prediction"].to_pylist()
    assert len(found) == 300
    model = onnx_model(trained)
    assert check(trained, model, tmp_path / "new.parquet").relative < 1e-4
    onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    graph = onnx.load_from_string(model).graph  # onnxruntime warns of what no node uses
    used = {each for node in graph.node for each in node.input}
    assert {constant.name for constant in graph.initializer} <= used


SPECS = {
    "numbers": """
version: 1
name: numbers
label: {column: y, domain: {kind: integer, min: 0, max: 10}}
loss: squared
privacy: {epsilon: 4}
prior: {kind: uniform}
mechanism: {kind: optimal_unbiased}
""",
    "classes": """
version: 1
name: classes
label:
  column: colour
  domain: {kind: categorical, values: [red, green, blue]}
  out_of_domain: {default: red}
loss: zero_one
privacy: {epsilon: 4}
prior: {kind: uniform}
mechanism: {kind: randomized_response}
""",
}


@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_private_labels_get_interactions_too(place, tmp_path, name):
    numbers = name == "numbers"
    spec = SPECS[name]
    compile_text(spec).write(place)
    loss = "squared" if numbers else "cross_entropy"
    text = TEXTS[name].split("method:", maxsplit=1)[0]
    text += f"model: {{kind: interactions}}\nloss: {loss}\n"
    text += f"method: {{kind: privatized, artifact: {name}.onnx}}\n"
    text = text.replace("classes: [red, green, blue]\n", "rows: 700\n")
    result = train(parse_config(text, "t.yaml", place), tmp_path / "run")
    metric = "test_mse" if numbers else "test_loss"
    constant = result.test.constant[metric.removeprefix("test_")]
    assert result.metrics[metric] < 0.75 * constant


WRONG = {
    "training": ("method:", "training: {epochs: 1, batch_size: 1}\nmethod:", "training"),
    "empty range": ("[0, 10]", "[10, 10]", "label_range"),
    "default outside": ("label_range", "default: 11, label_range", "outside label_range"),
    "four columns": ("label_range", "interactions: 4, label_range", "interactions"),
    "a network": (
        "method: {",
        "model: {kind: interactions}\nloss: squared\noptimizer: {kind: adam, learning_rate: 1}\n"
        "training: {epochs: 1, batch_size: 10}\nmethod: {kind: dp_sgd, ",
        "interactions needs method",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_configs_are_one_message(place, name):
    old, new, words = WRONG[name]
    with pytest.raises(InputError, match=words):
        parse_config(CONFIG.replace(old, new), "t.yaml", place)
