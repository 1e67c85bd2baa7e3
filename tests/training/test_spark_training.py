"""``labeldp train --spark``: the integers of a release are those of a table in memory."""

import itertools
import json
from functools import partial
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_trainer import InputError, load_config, sampled, train
from labeldp_trainer import spark as module
from labeldp_trainer.data.table import row_places
from labeldp_trainer.methods import staged_release
from labeldp_trainer.one_release.release import read_release
from labeldp_trainer.staged_release.draw import Draws
from labeldp_trainer.staged_release.release import read_staged

from labeldp_compile.cli import main
from runtime.tests.engines.conftest import run_program
from runtime.tests.helpers import found_under
from trainer.tests.noise import no_noise, nothing_is_drawn
from trainer.tests.one_release.test_command import files

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore:.*fork.*:DeprecationWarning", "ignore::FutureWarning:pyspark"
)
ROWS = 3000
NUMBERS = """
version: 1
name: numbers
data: {kind: table, train: "train[1]", test: test.parquet, label: y, numeric: [a, b.x],
       categorical: [c]}
loss: squared
method: {kind: one_release, epsilon: 1, delta: 1e-6, label_range: [0, 9]}
"""
CLASSES = (
    NUMBERS.replace("label: y", "label: colour, classes: [red, green, blue]")
    .replace("squared", "cross_entropy")
    .replace(", label_range: [0, 9]", "")
)
STAGED = {
    "counts": NUMBERS.replace("one", "staged")
    .replace("squared", "poisson")
    .replace("label:", "exposure: e, weights: w, label:"),
    "colours": CLASSES.replace("one", "staged"),
}
GAPS = NUMBERS.replace("label: y", "label: gaps").replace("label_range", "default: 2, label_range")
GAPS = GAPS.replace("test: test.parquet, ", "")
TABLES = {
    "numbers": NUMBERS,
    "classes": CLASSES,
    "categories": NUMBERS.replace("categorical: [c]", "categorical: [c, colour, w]"),
    "dates": NUMBERS.replace("label: y", "label: y, dates: [d]"),
    "gaps": GAPS,
    "flags": CLASSES.replace("colour, classes: [red, green, blue]", "flag, classes: [0, 1]"),
}
METHODS = {
    "splines": "method: {kind: one_release,",
    "cosines": "representation: {kind: random_fourier, features: 30}\nmethod: {kind: one_release,",
    "staged": "method: {kind: staged_release,",
}
USERS = ", user_column: who, max_examples_per_user: 5}"
METHODS |= {f"{name} of users": text for name, text in METHODS.items()}


def table(rows, seed):
    random = np.random.default_rng(seed)
    a, b, c = random.normal(size=rows), random.normal(size=rows), random.choice(list("uvw"), rows)
    y = np.clip(3 + a * b + 2 * (c == "u") + random.normal(size=rows) / 2, 0, 9)
    colour = np.where(a + b < 0, "red", np.where(c == "u", "green", "blue"))
    more = {"w": random.choice([1, 2, 4], rows), "e": 0.5 + random.random(rows)}
    more["d"] = pa.array(random.integers(0, 20_000, rows), pa.int32()).cast(pa.date32())
    more |= {"flag": (y > 3).astype(np.int8), "gaps": pa.array(y, mask=random.random(rows) < 0.1)}
    who = np.char.add(random.integers(0, 900, rows).astype(str), random.choice(["", " "], rows))
    more["who"] = np.where(random.random(rows) < 0.1, "1", who)  # who has more rows than others
    more["nobody"] = pa.array(range(rows), mask=np.arange(rows) == 2_000)
    own = {"c": c, "a": a, "y": y, "b.x": b, "colour": colour, "user": np.arange(rows)}
    return pa.table(own | more)


def write(folder):
    """Two files of several row groups, with a name that has a pattern in it, and configs."""
    whole = table(ROWS, 0)
    (folder / "train[1]").mkdir()
    for number, part in enumerate((whole.slice(0, 1100), whole.slice(1100))):
        pq.write_table(part, folder / "train[1]" / f"p {number}+é%20.parquet", row_group_size=400)
    pq.write_table(table(500, 1), folder / "test.parquet")
    for name, text in {"train": NUMBERS, "classes": CLASSES, **STAGED}.items():
        (folder / f"{name}.yaml").write_text(text)


@pytest.fixture(scope="module")
def place(tmp_path_factory, spark):
    """The table, and runs without noise in memory."""
    spark.conf.set("spark.sql.files.maxPartitionBytes", "32k")
    folder = tmp_path_factory.mktemp("table")
    write(folder)
    with no_noise(), staged_noise():
        for name in ("train", "classes", *STAGED):
            train(load_config(folder / f"{name}.yaml"), folder / "memory" / name)
    return folder


def staged_noise(add=lambda exact, sigma: exact + sigma // 3):
    """The same of every draw."""
    return mock.patch.object(staged_release, "Draws", partial(Draws, add_noise=add))


def release_of(folder):
    return read_release(folder / "release.npz")


_STATEMENT = {"privacy.json", "privacy.txt"}


def differing(memory, spark):
    """The files of a run that are not those of another one."""
    one, other = files(memory), files(spark)
    return {name for name in {*one, *other} if one.get(name) != other.get(name)}


def wrapped(monkeypatch, wrap):
    """Every task is wrapped; the numbers of results of each job."""
    original, counts = module.SparkTable.results, []

    def results(self, task, *, labelled):
        counts.append(len(found := original(self, wrap(task), labelled=labelled)))
        return found

    monkeypatch.setattr(module.SparkTable, "results", results)
    return counts


@pytest.mark.parametrize("name", ["train", "classes", *STAGED])
def test_a_run_is_that_of_a_table_in_memory(place, spark, monkeypatch, name):
    counts = wrapped(monkeypatch, lambda task: task)
    with no_noise(), staged_noise():
        train(load_config(place / f"{name}.yaml"), place / "spark" / name, spark=spark)
    assert len(counts) == {"counts": 9, "colours": 5}.get(name, 1) and min(counts) > 2
    assert "sent sums without noise" in (place / "spark" / name / "privacy.txt").read_text()
    assert differing(place / "memory" / name, place / "spark" / name) == _STATEMENT


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *itertools.product(TABLES, ["splines", "cosines", "staged"]),
        ("weights and exposure", "staged"),
        *itertools.product(["numbers", "flags"], ["splines of users", "staged of users"]),
    ],
)
def test_of_more_rows_than_the_sample_a_run_is_that_of_files_that_are_streamed(
    place, spark, monkeypatch, tmp_path, name, method
):
    """Six tables and three methods: the same sample, integers, release, parameters and effects."""
    monkeypatch.setattr(module, "_ROWS", 500)
    monkeypatch.setattr(sampled, "SAMPLED", 700)
    monkeypatch.setattr(sampled, "_AT_ONCE", 333)
    text = TABLES.get(name, STAGED["counts"])
    text = text.replace("method: {kind: one_release,", METHODS[method])
    if "users" in method:
        text = text.strip()[:-1] + USERS
    (place / f"{name} {method}.yaml").write_text(text)
    loaded = load_config(place / f"{name} {method}.yaml")
    for folder, more in (("streamed", {}), ("spark", {"spark": spark})):
        with no_noise(), staged_noise():
            rows = train(loaded, tmp_path / folder, **more).rows
            assert ROWS * 0.7 < rows < ROWS - 200 if "users" in method else rows == ROWS
    assert differing(tmp_path / "streamed", tmp_path / "spark") == _STATEMENT


def test_the_noise_is_for_the_integers_that_were_summed(place, spark, monkeypatch, tmp_path):
    """Floats of executors are off by an ulp, others in each attempt, and an attempt is in vain."""

    def nudged(task, folder=str(tmp_path)):
        def run(batches):
            import os
            from pathlib import Path
            from unittest import mock

            import numpy as np
            from labeldp_trainer.one_release import rows
            from labeldp_trainer.representations import learning
            from pyspark import TaskContext

            random = np.random.default_rng(int.from_bytes(os.urandom(8), "little"))
            vectors_of_part, lengths, seen = learning.vectors_of_part, rows.lengths, []

            def near(representation, part):
                vectors = vectors_of_part(representation, part)
                ends = np.where(random.random(vectors.shape) < 0.5, -np.inf, np.inf)
                return np.nextafter(vectors, ends.astype(np.float32))

            def kept(parts, owners):
                whole = list(parts)
                seen.extend(integers for _, integers in whole)
                return lengths(whole, owners)

            one = mock.patch.object(learning, "vectors_of_part", near)
            with one, mock.patch.object(rows, "lengths", kept):
                found = list(task(batches))
            yield from found
            context = TaskContext.get()
            if context.partitionId() == 1 and context.attemptNumber() == 0:
                raise OSError("lost")
            for number, integers in enumerate(seen):
                np.save(Path(folder) / f"{context.partitionId()}-{number}.npy", integers)

        return run

    wrapped(monkeypatch, nudged)
    with no_noise():
        train(load_config(place / "classes.yaml"), tmp_path / "run", spark=spark)
    release, memory = release_of(tmp_path / "run"), release_of(place / "memory" / "classes")
    summed = np.concatenate([np.load(file) for file in tmp_path.glob("*.npy")]).astype(np.int64)
    assert len(summed) == ROWS == release.facts.rows
    assert np.array_equal(release.statistic.sum(axis=1), summed.sum(axis=0))
    assert release.facts.longest == np.square(summed).sum(axis=1).max()
    assert release.facts.squared_sensitivity == 2 * release.facts.longest
    assert release.facts.rows_sha256 != memory.facts.rows_sha256
    assert not np.array_equal(release.statistic, memory.statistic)


def test_a_driver_that_is_lost_between_stages_draws_nothing_twice(place, spark, monkeypatch):
    """Task 1 of part 5 fails for good; attempts of other tasks have computed their sums in vain."""
    loaded, counts, lost = load_config(place / "counts.yaml"), [], ["the fifth job"]
    folder = place / "spark" / "lost"

    def failing(task):
        def run(batches):
            from pyspark import TaskContext

            found, context = list(task(batches)), TaskContext.get()
            if context.partitionId() == 1 and (last or context.attemptNumber() == 0):
                raise ValueError("the label is 7")
            yield from found

        last = len(counts) == 4 and bool(lost)
        return run

    counts = wrapped(monkeypatch, failing)
    with staged_noise(), pytest.raises(InputError) as error:
        train(loaded, folder, spark=spark)
    said = str(error.value)
    assert "--resume continues" in said and "7" not in said.replace(str(place), "")
    assert len(read_staged(folder / "release.npz").parts) == len(counts) == 4
    drawn = []
    lost.clear()

    def noise(exact, sigma):
        drawn.append(exact)
        return exact + sigma // 3

    with staged_noise(noise):
        train(loaded, folder, resume=True, spark=spark)
    assert differing(place / "memory" / "counts", folder) == _STATEMENT
    assert len(drawn) == 5


_NOT_COUNTED = {  # how Spark says that an attempt ended
    "lost": "ExecutorLostFailure",
    "speculative": "Finish but did not commit due to another attempt succeeded",
}


@pytest.mark.slow
@pytest.mark.parametrize("event", _NOT_COUNTED)
@pytest.mark.parametrize(("name", "jobs"), [("train", 1), ("counts", 9)])
def test_sums_that_are_computed_twice_count_once(place, tmp_path, name, jobs, event):
    """An executor is lost with sums, or a task and its speculative copy both send theirs."""
    write(tmp_path)
    found = json.loads(run_program("tests.training.spark_runs", tmp_path, name, event)[-1])
    ends = found["ends"].values()
    assert len(found["results"]) == jobs and found["results"][0] == len(ends) > 2
    assert all(each.count("Success") == 1 for each in ends)
    assert [end for each in ends for end in each if end != "Success"] == [_NOT_COUNTED[event]]
    memory, run = place / "memory" / name, tmp_path / event / "run"
    assert differing(memory, run) == _STATEMENT


def test_a_run_is_resumed_fitted_again_and_verified_and_leaves_no_sum(
    place, spark, spark_folders, tmp_path, monkeypatch
):
    counts = wrapped(monkeypatch, lambda task: task)

    def labeldp(*arguments):
        result = CliRunner().invoke(
            main, ["train", str(place / "train.yaml"), *map(str, arguments)]
        )
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    run, again = tmp_path / "run", tmp_path / "again"
    labeldp("-o", run, "--spark")
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(300_000)
    exact = release_of(place / "memory" / "train").statistic.tobytes()
    assert len(exact) > 50
    assert not any(found_under(folder, exact) for folder in (run, *spark_folders.iterdir()))
    release = (run / "release.npz").read_bytes()
    with nothing_is_drawn():
        labeldp("-o", run, "--spark", "--resume")
        labeldp("-o", again, "--spark", "--from-release", run / "release.npz")
        assert "verified" in labeldp("--spark", "--verify-release", run / "release.npz")
        assert "verified" in labeldp("--verify-release", run / "release.npz")  # in memory
    assert len(counts) == 4
    assert release == (run / "release.npz").read_bytes() == (again / "release.npz").read_bytes()


def refused(place, spark, tmp_path, text):
    (place / "other.yaml").write_text(text)
    with pytest.raises(InputError) as error:
        train(load_config(place / "other.yaml"), tmp_path / "run", spark=spark)
    assert not (tmp_path / "run").exists()
    return str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "{kind: one_release, epsilon: 1, delta: 1e-6, label_range: [0, 9]}",
            "{kind: none}",
            "takes",
        ),
        (
            "epsilon: 1,",
            "epsilon: 1, user_column: nobody, max_examples_per_user: 1,",
            "rows without a user",
        ),
        ("loss: squared", "representation: pca\nloss: squared", "takes splines or random_fourier"),
        ("label: y", "label: y, rows: 100", "remove this key"),
        ('"train[1]"', "test.csv", "Parquet"),
        ("numeric: [a", "numeric: [z", "no column 'z'"),
    ],
)
def test_what_spark_does_not_do_is_one_error(place, spark, tmp_path, old, new, words):
    (place / "test.csv").write_text("a,b.x,c,y\n1,2,u,3\n")
    assert words in refused(place, spark, tmp_path, NUMBERS.replace(old, new))


def test_a_row_beyond_the_sample_and_a_failed_job_are_one_error_without_a_label(
    place, spark, tmp_path, monkeypatch
):
    monkeypatch.setattr(sampled, "SAMPLED", 500)
    far = table(ROWS, 0).to_pydict()
    beyond = np.flatnonzero(row_places("far.parquet", np.arange(ROWS)) % sampled.step_of(ROWS))[7]
    far["a"][beyond] = 1e300
    pq.write_table(pa.table(far), tmp_path / "far.parquet", row_group_size=400)
    text = NUMBERS.replace('"train[1]"', str(tmp_path / "far.parquet"))
    assert "have features that cannot be used" in refused(place, spark, tmp_path, text)

    def failing(task):
        def run(batches):
            yield from ()
            raise ValueError("the label is 7")

        return run

    wrapped(monkeypatch, failing)
    said = refused(place, spark, tmp_path, NUMBERS)
    assert "did not finish a job" in said and "7" not in said.replace(str(place), "")


def test_a_task_has_all_rows_of_a_user_at_once():
    """Their numbers may be more than 2^63 apart."""
    far = [-6 * 10**18] * 2 + [0] + [6 * 10**18] * 3
    rows = lambda own: pa.record_batch({"person": pa.array(own, pa.int64())})  # noqa: E731
    batches = [rows(far[start : start + 2]) for start in (0, 2, 4)] + [rows([])]
    found = [batch.column(0).to_pylist() for batch in module._whole_users(iter(batches), 0)]
    assert [*itertools.chain(*found)] == far
    assert all({*a}.isdisjoint(b) for a, b in itertools.pairwise(found))
    with pytest.raises(ValueError, match="follow one another"):
        list(module._whole_users(iter([rows([0, 6 * 10**18, -6 * 10**18, 0])]), 0))


def test_an_exception_in_a_task_says_nothing_of_rows(place):
    """Spark writes it into logs, and on the driver's terminal."""

    def batches():
        yield from ()
        raise ValueError("the label is 7")

    data = load_config(place / "train.yaml").config.data
    task = module.SumRows("t", data, None, None, module.RowSums.zeros(1, (1,)), None, True)
    with pytest.raises(RuntimeError) as found:
        list(task(batches()))
    assert str(found.value) == "ValueError" and found.value.__suppress_context__
