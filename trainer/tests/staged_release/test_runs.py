"""Runs of the command: labels decide nothing but the answers, and no stage is drawn twice."""

import dataclasses
import functools
import shutil

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_trainer import FeatureShape, training
from labeldp_trainer.interactions.effects import effects_of
from labeldp_trainer.interactions.stages import Learner
from labeldp_trainer.losses import Loss
from labeldp_trainer.methods import staged_release as method_module
from labeldp_trainer.methods.interactions import params_of
from labeldp_trainer.models import Interactions
from labeldp_trainer.staged_release.draw import Draws
from labeldp_trainer.staged_release.plan import KINDS
from labeldp_trainer.staged_release.release import read_staged

from labeldp_compile.cli import main
from trainer.tests.one_release.test_command import files
from trainer.tests.one_release.test_silence import LABELS, write
from trainer.tests.staged_release.staged_helpers import ENDS, own_noise, table

CONFIG = """
version: 1
name: quiet
data: {kind: table, train: train.%s, label: y, numeric: [a], categorical: [c]%s}
loss: %s
method: {kind: staged_release, epsilon: 2, delta: 1e-3, interactions: 2%s}
"""
CLASSES = ", classes: [red, green, blue]", "cross_entropy", ", default: green"
NUMBERS = "", "squared", ", label_range: [-1, 3], default: 2"


def labeldp(*arguments):
    return CliRunner().invoke(main, ["train", *map(str, arguments)])


def prepare(directory, kind="numbers", suffix="parquet", labels=None):
    write(directory, LABELS[kind][0] if labels is None else labels, kind, suffix)
    text = CONFIG % (suffix, *(CLASSES if kind == "colours" else NUMBERS))
    (directory / "t.yaml").write_text(text, encoding="utf-8")
    return directory / "t.yaml", directory / "run"


def with_noise(monkeypatch, add_noise):
    monkeypatch.setattr(method_module, "Draws", functools.partial(Draws, add_noise=add_noise))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("kind", "suffix"), [("colours", "parquet"), ("numbers", "parquet"), ("cells", "csv")]
)
def test_no_label_changes_a_word_or_a_file(tmp_path, monkeypatch, kind, suffix):
    """The noise is so large that nothing of the statistics is left: all else is the same."""
    exact = []

    def keep(statistic, sigma):
        exact.append(statistic.copy())
        return np.full_like(statistic, sigma)

    with_noise(monkeypatch, keep)
    expected, sums = None, []
    for labels in LABELS[kind]:
        config, output = prepare(tmp_path, kind, suffix, labels)
        exact.clear()
        result = labeldp(config, "-o", output)
        assert result.exit_code == 0, (result.output, result.exception)
        found = result.stdout, result.stderr, files(output)
        shutil.rmtree(output)
        expected = expected or found
        assert found == expected
        sums.append(exact.copy())
    for one in sums[1:]:
        assert any((a != b).any() for a, b in zip(one, sums[0], strict=True))


class KilledError(Exception):
    """Nothing after it runs, as after a kill."""


PARTS = len(KINDS[False])


def stopped_at(monkeypatch, part):
    """A run that ends when this part is drawn, and before anything is written of it."""
    drawn = []

    def add(statistic, sigma):
        if len(drawn) == part:
            raise KilledError
        drawn.append(sigma)
        return statistic + sigma * np.arange(statistic.size).reshape(statistic.shape) % 1000

    with_noise(monkeypatch, add)
    return drawn


@pytest.mark.slow
def test_a_run_that_is_killed_draws_what_is_missing_and_nothing_else(tmp_path, monkeypatch):
    config, output = prepare(tmp_path)
    for part in range(PARTS):
        shutil.rmtree(output, ignore_errors=True)
        stopped_at(monkeypatch, part)
        assert isinstance(labeldp(config, "-o", output).exception, KilledError)
        before = read_staged(output / "release.npz")
        assert len(before.parts) == part and not before.complete
        refused = labeldp(
            config, "-o", tmp_path / "other", "--from-release", output / "release.npz"
        )
        assert refused.exit_code == 2 and "some stages are missing" in refused.stderr
        drawn = stopped_at(monkeypatch, PARTS - part)
        assert labeldp(config, "-o", output, "--resume").exit_code == 0
        after = read_staged(output / "release.npz")
        assert after.complete and len(drawn) == PARTS - part
        assert type(after)(before.facts, after.columns, after.parts[:part]).sha256 == before.sha256
    stopped_at(monkeypatch, 0)  # nothing more is drawn, and labels are not needed
    (tmp_path / "train.parquet").rename(tmp_path / "whole.parquet")
    pq.write_table(
        pq.read_table(tmp_path / "whole.parquet", columns=["a", "c"]), tmp_path / "train.parquet"
    )
    again = labeldp(config, "-o", tmp_path / "again", "--from-release", output / "release.npz")
    assert again.exit_code == 0, again.output
    words = "nothing here can prove it"  # that noise was drawn
    assert words in again.stdout and words in (tmp_path / "again" / "privacy.json").read_text()
    assert words in labeldp(config, "-o", tmp_path / "again", "--resume").stdout
    assert words not in (output / "privacy.json").read_text()


def test_a_run_is_not_resumed_without_a_release_of_its_own(tmp_path, monkeypatch):
    """Someone may have seen what it drew: the same stages would be drawn a second time."""
    config, output = prepare(tmp_path)
    stopped_at(monkeypatch, 3)
    assert isinstance(labeldp(config, "-o", output).exception, KilledError)
    (output / "release.npz").unlink()
    drawn = stopped_at(monkeypatch, PARTS)
    result = labeldp(config, "-o", output, "--resume")
    assert result.exit_code == 2 and "release.npz: does not exist" in result.stderr
    assert not drawn


def test_a_full_disk_names_the_run_and_keeps_what_was_drawn(tmp_path, monkeypatch):
    config, output = prepare(tmp_path)
    stopped_at(monkeypatch, PARTS)

    def full(path, *grown):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(training, "save_params", full)
        result = labeldp(config, "-o", output)
    assert result.exit_code == 2
    assert f"{output}: cannot be written: No space left on device; --resume" in result.stderr
    drawn = stopped_at(monkeypatch, 0)
    assert labeldp(config, "-o", output, "--resume").exit_code == 0 and not drawn


def test_of_two_processes_that_resume_a_run_one_gives_up(tmp_path, monkeypatch):
    """The other's file keeps its parts, and what the first has drawn is in no file."""
    config, output = prepare(tmp_path)
    stopped_at(monkeypatch, 2)
    labeldp(config, "-o", output)
    drawn, seen = [], []

    def add(statistic, sigma):
        if not drawn:  # another process is faster
            drawn.append(sigma)
            seen.append(labeldp(config, "-o", output, "--resume").exit_code)
            seen.append((output / "release.npz").read_bytes())
            return statistic
        drawn.append(sigma)
        return statistic + sigma

    with_noise(monkeypatch, add)
    result = labeldp(config, "-o", output, "--resume")
    assert result.exit_code == 2 and "another process has resumed this run" in result.stderr
    assert seen == [0, (output / "release.npz").read_bytes()]
    assert len(drawn) == 1 + PARTS - 2
    assert not [path for path in output.iterdir() if "partial" in path.name]


def test_the_result_of_a_run_names_every_number_of_its_release(tmp_path, monkeypatch):
    """Also the last answer, which no later part has the digest of."""
    config, output = prepare(tmp_path)
    stopped_at(monkeypatch, PARTS)
    assert labeldp(config, "-o", output).exit_code == 0
    path = output / "release.npz"
    assert labeldp(config, "--verify-release", path).exit_code == 0
    release = read_staged(path)
    last = release.parts[-1]
    altered = dataclasses.replace(last, answer=last.answer + np.int64(1))
    path.write_bytes(dataclasses.replace(release, parts=(*release.parts[:-1], altered)).to_bytes())
    result = labeldp(config, "--verify-release", path)
    assert result.exit_code == 1 and "result.json" in result.output
    (output / "result.json").write_text("[]", encoding="utf-8")  # of somebody else, too
    result = labeldp(config, "--verify-release", path)
    assert result.exit_code == 1 and "FAILED the run's result.json" in result.output
    path.rename(tmp_path / "release.npz")  # without the run no one can tell, and nothing is lost
    assert labeldp(config, "--verify-release", tmp_path / "release.npz").exit_code == 0


def test_without_a_default_a_missing_number_says_nothing(tmp_path, monkeypatch):
    """It is in no bin, and like every prediction: a range that is far too wide moves nothing."""
    exact = []

    def keep(statistic, sigma):
        exact.append(statistic.copy())
        return np.full_like(statistic, sigma)

    with_noise(monkeypatch, keep)
    found = []
    for labels in ([None, float("nan")], [0.5, None], [0.5]):
        config, output = prepare(tmp_path, labels=labels)
        config.write_text(config.read_text().replace(", default: 2", ""), encoding="utf-8")
        assert labeldp(config, "-o", output).exit_code == 0
        shutil.rmtree(output)
        found.append(exact.copy())
        exact.clear()
    nothing, half, whole = found
    assert len(nothing) == len(whole) == PARTS and not any(part.any() for part in nothing)
    for a, b in zip(half, whole, strict=True):
        if a.ndim == 1:
            assert np.count_nonzero(a) == np.count_nonzero(b) == 1 and 0 < a.sum() < b.sum()


@pytest.mark.parametrize("seed", range(4))
def test_whatever_noise_leaves_of_answers_a_model_follows(seed):
    """Few rows, many classes, small ε: often only the constant is asked about."""
    random = np.random.default_rng(seed)
    classes = None if seed % 4 == 0 else tuple(range(random.choice([2, 3, 10, 30])))
    count, epsilon = random.choice([3, 10, 40]), random.choice([0.01, 0.2, 8.0])
    own = table(seed, int(count), classes=classes, epsilon=float(epsilon), delta=1e-5, order=2)
    labels = random.uniform(*ENDS, count)
    if classes is not None:
        labels = random.integers(0, len(classes), count).astype(np.int32)
    fit = own.learn(own.draws(labels, add_noise=own_noise(random)))
    effects_of(fit)
    leaves = jax.tree.leaves(params_of(fit, "squared", None if classes else ENDS))
    assert not any(np.isnan(np.asarray(leaf)).any() for leaf in leaves)


@pytest.mark.parametrize("loss", ["poisson", "squared"])
def test_no_noise_makes_a_prediction_leave_the_range_of_labels(loss):
    random = np.random.default_rng(3)
    own = table(3, 40, classes=None, epsilon=0.2, delta=1e-5, order=2)
    draws = own.draws(random.uniform(*ENDS, 40), add_noise=own_noise(random))
    fit = dataclasses.replace(own.learn(draws), uncertainty=1e6, curve=None)
    for base in (0.0, 1e4):  # uncertain, and far beyond
        params = params_of(dataclasses.replace(fit, base=np.full(1, base)), loss, (0.0, 6.0))
        model = Interactions(loss, FeatureShape(), 1)
        rows = {"numeric": np.zeros((1, 0)), "categorical": np.zeros((1, 0), np.int32)}
        found = model.apply(params | {"columns": {}, "terms": {}}, rows)
        assert 0 <= Loss(loss, "regression").predictions(found).item() <= 6.01


def test_a_fit_that_fails_on_noise_alone_draws_nothing(tmp_path, monkeypatch):
    def fails(*arguments, **named):
        raise np.linalg.LinAlgError("singular")

    config, output = prepare(tmp_path, "colours")
    monkeypatch.setattr(method_module, "params_of", fails)
    monkeypatch.setattr(method_module, "class_labels", fails)  # no label is looked at
    result = labeldp(config, "-o", output)
    assert result.exit_code == 2 and "nothing was released" in result.stderr
    assert not output.exists()


def test_too_little_memory_after_a_draw_loses_nothing(tmp_path, monkeypatch):
    config, output = prepare(tmp_path)
    rehearse, learn = method_module.StagedReleaseBuilder._rehearse, Learner._next

    def fails(self, stage, known):
        if stage == 1:
            raise MemoryError
        return learn(self, stage, known)

    def rehearsed(*given):
        monkeypatch.setattr(Learner, "_next", learn)
        rehearse(*given)
        monkeypatch.setattr(Learner, "_next", fails)

    monkeypatch.setattr(method_module.StagedReleaseBuilder, "_rehearse", rehearsed)
    result = labeldp(config, "-o", output)
    assert result.exit_code == 2 and "more memory than there is; --resume" in result.stderr
    drawn = read_staged(output / "release.npz").parts
    monkeypatch.undo()
    assert labeldp(config, "-o", output, "--resume").exit_code == 0
    again = read_staged(output / "release.npz").parts
    assert 0 < len(drawn) < len(again)
    for one, other in zip(drawn, again, strict=False):
        np.testing.assert_array_equal(one.answer, other.answer)


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_of_labels_that_are_all_alike_the_mean_alone_is_learned(tmp_path, loss):
    random, rows = np.random.default_rng(3), 2_000
    features = {"a": random.normal(size=rows), "c": random.choice(["x", "y"], rows)}
    pq.write_table(pa.table({**features, "y": np.full(rows, 7.0)}), tmp_path / "train.parquet")
    text = CONFIG % ("parquet", "", loss, ", label_range: [0, 40]")
    (tmp_path / "t.yaml").write_text(text, encoding="utf-8")
    result = labeldp(tmp_path / "t.yaml", "-o", tmp_path / "run")
    assert result.exit_code == 0 and "the model is their mean" in result.output
    release = read_staged(tmp_path / "run/release.npz")
    assert {part.facts.terms for part in release.parts if part.facts.kind == "sums"} == {()}
    verify = ["--verify-release", tmp_path / "run/release.npz"]
    assert labeldp(tmp_path / "t.yaml", *verify).exit_code == 0
    source = ["predict", tmp_path / "run", tmp_path / "train.parquet", "-o", tmp_path / "o.parquet"]
    assert CliRunner().invoke(main, list(map(str, source))).exit_code == 0
    (predicted,) = set(pq.read_table(tmp_path / "o.parquet")["prediction"].to_pylist())
    assert predicted == pytest.approx(7, abs=1)
    assert export(tmp_path / "run", tmp_path / "m.onnx").exit_code == 0


def export(run, output):
    return CliRunner().invoke(main, ["export", str(run), "--to", "onnx", "-o", str(output)])
