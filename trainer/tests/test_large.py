"""Tables that do not fit into memory: arrays on the disk, or a sample and sums over all rows."""

import dataclasses
import errno
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_runtime import Randomizer
from labeldp_trainer import DataError, load_config, sampled
from labeldp_trainer.config.data import TableData
from labeldp_trainer.data import features, table
from labeldp_trainer.data import users as by_user
from labeldp_trainer.data.table import TableRows, row_places
from labeldp_trainer.data.users import UserBound, owner_digests, taking_part
from labeldp_trainer.interactions import answers
from labeldp_trainer.one_release import plan
from labeldp_trainer.one_release.release import read_release
from labeldp_trainer.representations import representation
from labeldp_trainer.staged_release.release import read_staged

from labeldp_compile import compile_spec
from labeldp_compile.tabular import csv_file
from trainer.tests.one_release.test_command import files
from trainer.tests.staged_release.staged_helpers import own_noise
from trainer.tests.staged_release.test_runs import labeldp, with_noise

ROWS = 3_000
CONFIG = """
version: 1
name: large
data: {kind: table, train: rows, label: y, categorical: [c], %s}
loss: %s
method: {kind: %s, epsilon: 2, delta: 1e-3%s}
"""
STAGED = "staged_release"
KINDS = {
    "counts": (
        "numeric: [a, b], dates: [d], weights: w",
        "poisson",
        STAGED,
        ", label_range: [0, 9]",
    ),
    "classes": (
        "numeric: [a, b], dates: [d], weights: w, classes: [0, 1, 2]",
        "cross_entropy",
        STAGED,
        "",
    ),
    "vectors": ("numeric: [b], classes: [0, 1, 2]", "cross_entropy", "one_release", ""),
}
BOUND = ", user_column: u, max_examples_per_user: 3"
KINDS["numbers of users"] = (*KINDS["counts"][:3], KINDS["counts"][3] + BOUND)
KINDS["vectors of users"] = (*KINDS["vectors"][:3], BOUND)


def write(folder):
    """Three files, of which one has groups of rows and one has no missing number."""
    random = np.random.default_rng(5)
    columns = {
        "a": np.where(random.random(ROWS) < 0.1, np.nan, random.normal(size=ROWS)),
        "b": random.integers(0, 40, ROWS),
        "c": pa.array(random.choice(["x", "y", "z"], ROWS), mask=random.random(ROWS) < 0.1),
        "d": pa.array(random.integers(0, 20_000, ROWS), pa.int32()).cast(pa.date32()),
        "w": random.choice([0.5, 1.0, 2.0], ROWS),
        "y": random.integers(0, 3, ROWS),
        "u": random.choice(np.r_[np.arange(900), np.zeros(100)], ROWS),
    }
    whole = pa.table(columns)
    (folder / "rows").mkdir()
    for number, (start, stop) in enumerate([(0, 700), (700, 701), (701, ROWS)]):
        part = whole.slice(start, stop - start)
        pq.write_table(part, folder / f"rows/{number}.parquet", row_group_size=400)


@pytest.mark.parametrize("kind", KINDS)
def test_the_release_and_the_model_are_the_same(tmp_path, monkeypatch, kind):
    write(tmp_path)
    (tmp_path / "t.yaml").write_text(CONFIG % KINDS[kind])
    with_noise(monkeypatch, lambda exact, sigma: exact + sigma // 3)
    monkeypatch.setattr(plan, "noisy", lambda exact, sigma: exact + sigma // 3)
    found = []
    for where in ("memory", "disk"):
        if where == "disk":
            monkeypatch.setattr(features, "_IN_MEMORY", 0)
            monkeypatch.setattr(table, "_KEPT_BYTES", 0)
            monkeypatch.setattr(answers, "_KEPT_BYTES", 0)
            monkeypatch.setattr(representation, "_MOST_BYTES", 0)
            monkeypatch.setenv("TMPDIR", str(tmp_path))
        result = labeldp(tmp_path / "t.yaml", "-o", tmp_path / where / "run")
        assert result.exit_code == 0, result.output
        own = files(tmp_path / where / "run")
        assert ("representation/train.npy" in own) == ("vectors" in kind and where == "memory")
        stated = {"run.json", "representation/train.npy"}
        found.append({name: own[name] for name in own if name not in stated})
    assert found[0].keys() == found[1].keys() and found[0] == found[1]


def streamed(monkeypatch, rows, at_once):
    """Of a table with more rows than that, as many are read at once."""
    monkeypatch.setattr(sampled, "SAMPLED", rows)
    monkeypatch.setattr(sampled, "_AT_ONCE", at_once)
    monkeypatch.setattr(by_user, "_ROWS", 1_000)


@pytest.mark.parametrize("kind", KINDS)
def test_of_more_rows_than_the_sample_all_are_summed_once(tmp_path, monkeypatch, kind):
    write(tmp_path)
    (tmp_path / "t.yaml").write_text(CONFIG % KINDS[kind])
    streamed(monkeypatch, 500, 170)
    with_noise(monkeypatch, lambda exact, sigma: exact + sigma // 3)
    monkeypatch.setattr(plan, "noisy", lambda exact, sigma: exact + sigma // 3)
    original, sums = sampled.StreamedTable.sums, []
    data = load_config(tmp_path / "t.yaml").config.data

    def limited(whole):
        if not kind.endswith("users"):
            return whole
        places = [row_places(f"{i}.parquet", np.arange(n)) for i, n in enumerate([700, 1, 2_299])]
        persons = owner_digests(whole.columns["u"], "t", "u")
        order, owners = taking_part(persons, np.concatenate(places), UserBound("u", 3, 0))
        assert ROWS / 2 < len(order) < ROWS - 200 and np.bincount(owners).max() == 3
        return dataclasses.replace(whole.take(order), owners=owners)

    def summed(self, encoder, of, nothing, steps, *, labelled):
        done = []
        found = original(
            self, encoder, of, nothing, lambda *step: done.append(step), labelled=labelled
        )
        whole = limited(encoder.part(TableRows(tmp_path / "rows", data, ("y", "u"))))
        assert labelled and done[-1] == ("rows summed", whole.rows, whole.rows) and len(done) > 2
        sums.append((found, of(whole, whole.columns["y"])))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(sampled.StreamedTable, "sums", summed)
        assert labeldp(tmp_path / "t.yaml", "-o", tmp_path / "run").exit_code == 0
    file, staged = tmp_path / "run/release.npz", "staged" in KINDS[kind][2]
    parts = read_staged(file).parts if staged else [read_release(file)]
    assert len(parts) == len(sums)
    for part, (found, whole) in zip(parts, sums, strict=True):
        answer = part.answer if staged else part.statistic
        assert np.array_equal(answer - part.facts.sigma // 3, found.labels)
        assert np.array_equal(found.labels, whole.labels)
        assert found.lengths.longest == whole.lengths.longest
        assert found.lengths.sha256 == whole.lengths.sha256
        for one, other in zip(found.moments, whole.moments, strict=True):
            assert np.array_equal(one, other)
        if getattr(part.facts, "longest", None) is not None:
            assert part.facts.longest == whole.lengths.longest
            assert part.facts.rows_sha256 == whole.lengths.sha256
    verified = labeldp(tmp_path / "t.yaml", "--verify-release", file)
    assert verified.exit_code == 0, verified.output


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_table_of_a_billion_are_shorter(tmp_path, monkeypatch, kind):
    """The table says so, and has a part of them."""
    write(tmp_path)
    (tmp_path / "t.yaml").write_text(CONFIG % KINDS[kind])
    streamed(monkeypatch, 500, 170)
    with_noise(monkeypatch, lambda exact, sigma: exact)
    monkeypatch.setattr(plan, "noisy", lambda exact, sigma: exact)
    monkeypatch.setattr(sampled, "step_of", lambda rows, users=None: 6)
    longest = []
    for unit in (1 << 24, 1 << 21):
        if unit < 1 << 24:
            monkeypatch.setattr(sampled.StreamedTable, "rows", 10**9)
        run = tmp_path / str(unit)
        result = labeldp(tmp_path / "t.yaml", "-o", run)
        assert result.exit_code == 0, result.output
        file = run / "release.npz"
        facts = (read_staged if "staged" in KINDS[kind][2] else read_release)(file).facts
        parts = [part for part in getattr(facts, "parts", [facts]) if part.longest is not None]
        assert all((unit / 2) ** 2 < part.longest <= unit**2 for part in parts)
        longest.append(max(part.longest for part in parts) / unit**2)
        verified = labeldp(tmp_path / "t.yaml", "--verify-release", file)
        assert verified.exit_code == 0, verified.output
    assert longest[0] == pytest.approx(longest[1], rel=1e-3) and facts.rows == 10**9


SPEC = """
version: 1
name: a
goal: labels
label: {column: y, domain: {kind: integer, min: 0, max: 2}}
loss: squared
privacy: {epsilon: 2}
prior: {kind: uniform}
mechanism: {kind: randomized_response}
"""
PRIVATE = "privatized, artifact: a.onnx"
FITS = {
    "numbers": ("squared", "none", ""),
    "classes": ("cross_entropy", "none", ", classes: [0, 1, 2]"),
    "private numbers": ("squared", f"{PRIVATE}, private_column: y, unnoted: true", ""),
    "groups": (
        "cross_entropy",
        f"{PRIVATE}, private_column: y, unnoted: true",
        ", classes: [0, 1, 2]",
    ),
    "drawn here": ("cross_entropy", PRIVATE, ", classes: [0, 1, 2]"),
}


@pytest.mark.parametrize("kind", FITS)
def test_a_model_of_streamed_rows_is_that_of_rows_in_memory(tmp_path, monkeypatch, kind):
    loss, method, classes = FITS[kind]
    write(tmp_path)
    spec = SPEC
    if kind == "groups":
        spec = spec.replace("uniform", "public, data: rows/0.parquet")
        spec += "groups: {columns: [{column: c, values: [x, y]}]}\n"
    (tmp_path / "a.yaml").write_text(spec)
    compile_spec(tmp_path / "a.yaml").write(tmp_path)
    data = f"data: {{kind: table, train: rows, label: y, numeric: [b], dates: [d]{classes}}}"
    text = f"version: 1\nname: large\n{data}\nloss: {loss}\nmethod: {{kind: {method}}}\n"
    (tmp_path / "t.yaml").write_text(text)
    near = pq.read_table(tmp_path / "rows")["b"].to_numpy() // 14
    drawn = np.where(np.arange(ROWS) % 3 == 0, np.arange(ROWS) // 3 % 3, near)
    monkeypatch.setattr(Randomizer, "__call__", lambda *given, **columns: drawn)
    original, found, seen = sampled.StreamedTable.each, [], []

    def each(*given):
        for one in original(*given):
            seen.append(one)
            yield one

    monkeypatch.setattr(sampled.StreamedTable, "each", each)
    for where in ("memory", "streamed"):
        if where == "streamed":
            assert not seen
            streamed(monkeypatch, 500, 170)
            monkeypatch.setattr(table, "row_places", lambda file, rows: 0 * rows)
        result = labeldp(tmp_path / "t.yaml", "-o", tmp_path / where / "run")
        assert result.exit_code == 0, result.output
        with np.load(tmp_path / where / "run/params.npz") as params:
            found.append({name: params[name] for name in params})
    assert len(seen) == -(-ROWS // 170)
    for name, one in found[0].items():
        np.testing.assert_allclose(found[1][name], one, rtol=1e-5, atol=1e-5)


def test_rows_beyond_the_sample_are_refused_before_there_is_a_run(tmp_path, monkeypatch):
    streamed(monkeypatch, 500, 170)
    rows = np.arange(ROWS)
    far = rows[row_places("t.parquet", rows) % sampled.step_of(ROWS) != 0][1_500]
    numbers = np.where(rows == far, 1e300, rows)
    pq.write_table(pa.table({"b": numbers, "y": rows % 3}), tmp_path / "t.parquet")
    text = (CONFIG % KINDS["vectors"]).replace("train: rows", "train: t.parquet")
    text = text.replace("[c]", "[]").replace("one_release, epsilon: 2, delta: 1e-3", "none")
    (tmp_path / "t.yaml").write_text(text)
    result = labeldp(tmp_path / "t.yaml", "-o", tmp_path / "run")
    assert result.exit_code == 2 and "1 of 170 rows" in result.stderr
    assert not (tmp_path / "run").exists()


def test_the_bytes_of_labels_do_not_move_the_rows_that_a_message_names(tmp_path, monkeypatch):
    streamed(monkeypatch, 500, 170)
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 1 << 12)
    (tmp_path / "t.yaml").write_text((CONFIG % KINDS["vectors"]).replace("train: rows", "train: t"))
    rows, found = np.arange(ROWS), set()
    far = rows[row_places("t.csv", rows) % sampled.step_of(ROWS) != 0][1_500]
    cells = [f"{'1e300' if row == far else row},{'xyz'[row % 3]}" for row in rows]
    (tmp_path / "t").mkdir()
    for label in ("1", "1" * 40):
        text = "".join(f"{cell},{label}\n" for cell in cells)
        (tmp_path / "t/t.csv").write_text("b,c,y\n" + text)
        result = labeldp(tmp_path / "t.yaml", "-o", tmp_path / "run")
        assert result.exit_code == 2
        found.add(result.stderr)
    start = far // 170 * 170
    named = f"rows {start + 1:,} to {start + 170:,}: 1 of 170 rows"
    assert len(found) == 1 and named in found.pop()


@pytest.mark.parametrize("kind", [pa.string_view(), pa.dictionary(pa.int8(), pa.binary())])
def test_labels_of_any_type_can_be_streamed_or_are_refused(tmp_path, monkeypatch, kind):
    streamed(monkeypatch, 50, 30)
    text = (CONFIG % KINDS["vectors"]).replace("[0, 1, 2]", "['0', '1']").replace("[c]", "[]")
    (tmp_path / "t.yaml").write_text(text)
    (tmp_path / "rows").mkdir()
    for number in range(2):
        if kind == pa.string_view():
            labels = pa.array(["0", "1", None, "2"] * 25).cast(kind)
        else:  # together there are more entries than such indices can name
            entries = pa.array([f"{number}{entry}".encode() for entry in range(100)])
            labels = pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), entries)
        columns = {"b": np.arange(100.0) + number, "y": labels}
        pq.write_table(pa.table(columns), tmp_path / f"rows/{number}.parquet")
    result = labeldp(tmp_path / "t.yaml", "-o", tmp_path / "run")
    if kind == pa.string_view():
        assert result.exit_code == 0, result.output
    else:
        assert result.exit_code == 2 and "declared to hold bytes" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["counts", "classes"])
def test_no_neighbour_of_a_streamed_table_moves_a_part_by_more_than_it_states(
    tmp_path, monkeypatch, kind
):
    """Theorem 18, along the history of one release: each label of eight, replaced by each other."""
    random, texts = np.random.default_rng(3), CONFIG % KINDS[kind]
    (tmp_path / "t.yaml").write_text(texts.replace("train: rows", "train: few.parquet"))
    streamed(monkeypatch, 4, 3)
    values, labels = [0, 1, 2, None if kind == "counts" else 7], random.integers(0, 3, 8).tolist()
    columns = {"a": random.normal(size=8), "b": random.normal(size=8), "c": list("xyxyyxzz")}
    columns["d"] = pa.array(random.integers(0, 9, 8), pa.int32()).cast(pa.date32())
    columns["w"] = random.choice([0.5, 1.0], 8)

    def exact(name, labels, noise):
        found = []

        def add(statistic, sigma):
            found.append(statistic.copy())
            return noise(statistic, sigma)

        with_noise(monkeypatch, add)
        pq.write_table(pa.table(columns | {"y": labels}), tmp_path / "few.parquet")
        result = labeldp(tmp_path / "t.yaml", "-o", tmp_path / name)
        assert result.exit_code == 0, result.output
        return found, read_staged(tmp_path / name / "release.npz")

    first, release = exact("run", labels, own_noise(random))
    farthest = np.zeros(len(release.parts))
    for row, value in [(row, v) for row in range(8) for v in values if v != labels[row]]:
        answers = iter([part.answer for part in release.parts])
        other = [*labels[:row], value, *labels[row + 1 :]]
        again = lambda statistic, sigma: next(answers).reshape(statistic.shape)  # noqa: B023, E731
        found, same = exact(f"{row} {value}", other, again)
        assert same.sha256 == release.sha256
        moved = [np.square((a - b).astype(float)).sum() for a, b in zip(first, found, strict=True)]
        farthest = np.maximum(farthest, moved)
    stated = [part.facts.squared_sensitivity for part in release.parts]
    assert (farthest <= stated).all() and farthest[0] > 0 and (farthest / stated).max() > 0.2


def test_a_disk_without_room_is_an_error_before_anything_is_drawn(tmp_path, monkeypatch):
    write(tmp_path)
    (tmp_path / "t.yaml").write_text(CONFIG % KINDS["counts"])
    monkeypatch.setattr(features, "_IN_MEMORY", 0)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    result = labeldp(tmp_path / "t.yaml", "-o", tmp_path / "run")
    assert result.exit_code == 2 and "set TMPDIR to a folder on a larger disk" in result.stderr
    assert not (tmp_path / "run").exists()


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    write(tmp_path)
    monkeypatch.setattr(table, "_KEPT_BYTES", 0)
    config = TableData(kind="table", train="rows", label="y", numeric=("b",))
    rows = TableRows(tmp_path / "rows", config, ["y"])
    assert rows.rows == ROWS
    (tmp_path / "rows/1.parquet").unlink()
    with pytest.raises(DataError, match="changed while it was read"):
        list(rows.batches())
