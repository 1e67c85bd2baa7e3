"""``labeldp randomize --append``: ids and names decide, and nothing that is there changes."""

import errno
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from labeldp_runtime import Key, whole_file

from labeldp_compile.tabular.provenance import MANIFEST
from tests.cli.test_cli import labeldp
from tests.fixtures.compiled import INTEGER_SPEC, compile_text

N = 3000


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with two artifacts and two keys."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "a.onnx").write_bytes(compile_text(INTEGER_SPEC).model)
    other = INTEGER_SPEC.replace("epsilon: 1", "epsilon: 2")
    assert other != INTEGER_SPEC
    (folder / "b.onnx").write_bytes(compile_text(other).model)
    for name in ("k.key", "other.key"):
        assert labeldp("keygen", folder / name).exit_code == 0
    return folder


def write(path, rows, *, shift=0, ids=None):
    """A table of some rows; ``shift`` changes every label."""
    rows = np.asarray(rows)
    table = pa.table(
        {
            "day": [f'{row // 1000}, "quoted"' for row in rows],
            "id": [f"né {row}" for row in rows] if ids is None else ids,
            "y": (rows + shift) % 7,
        }
    )
    (pa_csv.write_csv if path.suffix == ".csv" else pq.write_table)(table, path)
    return path


def read(path, columns=("id", "y")):
    table = pa_csv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)
    return list(zip(*(table[name].to_pylist() for name in columns), strict=True))


def drawn(folder):
    return {path.name: read(path) for path in sorted(folder.glob("[0-9a-z]*"))}


def append(made, table, folder, *options, artifact="a.onnx", key="k.key"):
    words = ["--append", "--key", made / key, "--id-column", "id", *options]
    return labeldp("randomize", made / artifact, table, "-o", folder, *words)


def once(made, table, output, artifact="a.onnx", key="k.key"):
    words = ["--key", made / key, "--id-column", "id", "--overwrite"]
    assert labeldp("randomize", made / artifact, table, "-o", output, *words).exit_code == 0
    return read(output)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_days_add_up_to_one_run(made, tmp_path, kind):
    folder = tmp_path / "private"
    for day in range(3):
        table = write(tmp_path / f"day{day}.{kind}", range(1000 * day, 1000 * (day + 1)))
        result = append(made, table, folder)
        assert result.exit_code == 0, result.output
        assert "already in the folder" not in result.stderr
    found = drawn(folder)
    assert list(found) == [f"day{day}.{kind}" for day in range(3)]
    whole = once(made, write(tmp_path / f"all.{kind}", range(N)), tmp_path / f"once.{kind}")
    assert [row for rows in found.values() for row in rows] == whole


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_known_id_keeps_its_label_and_other_cells_stay_as_they_are(made, tmp_path, kind):
    folder, table = tmp_path / "private", tmp_path / f"orders.{kind}"
    order = np.random.default_rng(0).permutation(N)
    write(table, order[:1000])
    assert append(made, table, folder, "--part", "one").exit_code == 0
    before = (folder / f"one.{kind}").read_bytes()
    write(table, order, shift=1)  # all of them, in another order, each with another label
    result = append(made, table, folder, "--part", "two")
    assert result.exit_code == 0 and "1,000 rows are already in the folder" in result.stderr
    assert (folder / f"one.{kind}").read_bytes() == before
    whole = dict(once(made, table, tmp_path / f"once.{kind}"))
    assert dict(drawn(folder)[f"two.{kind}"]) == {
        f"né {row}": whole[f"né {row}"] for row in order[1000:]
    }
    days = read(folder / f"two.{kind}", ("id", "day"))
    assert all(day == f'{int(name[3:]) // 1000}, "quoted"' for name, day in days)


def test_a_part_that_is_there_stays_whatever_the_table_holds(made, tmp_path):
    folder, table = tmp_path / "private", write(tmp_path / "t.parquet", range(100))
    assert append(made, table, folder, "--part", "2024-01-01").exit_code == 0
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for rows, shift, words in [
        (range(100), 0, "nothing was drawn"),
        (range(100), 3, "nothing was drawn"),
        (range(150), 3, "50 rows of TABLE could be drawn"),
    ]:
        write(table, rows, shift=shift)
        result = append(made, table, folder, "--part", "2024-01-01")
        assert result.exit_code == 0 and words in result.stderr
        assert ("could be drawn" in result.stderr) == (len(rows) > 100)
    other = append(made, table, folder, "--part", "2024-01-01", artifact="b.onnx", key="other.key")
    assert other.exit_code == 0 and "with another artifact_sha256, key" in other.stderr
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_no_label_decides_a_message(made, tmp_path):
    said = set()
    for shift, name in ((0, "one"), (1, "two"), (5, "one")):
        folder, table = tmp_path / name, write(tmp_path / "t.csv", range(500), shift=shift)
        for _ in range(2):
            result = append(made, table, folder, "--part", "x")
            said.add((result.exit_code, result.stderr.replace(str(folder), "FOLDER")))
    assert len(said) == 2  # drawn, and there already


def test_the_manifest_says_what_drew_each_part_and_holds_no_key(made, tmp_path):
    folder, key = tmp_path / "private", Key.load(made / "k.key")
    assert (
        append(made, write(tmp_path / "a.csv", range(10)), folder, "--version", "3").exit_code == 0
    )
    table = write(tmp_path / "b.csv", range(10, 30))
    assert append(made, table, folder, artifact="b.onnx", key="other.key").exit_code == 0
    text = (folder / "_labeldp.json").read_text(encoding="utf-8")
    parts = json.loads(text)["parts"]
    assert list(parts) == ["a.csv", "b.csv"] and [part["rows"] for part in parts.values()] == [
        10,
        20,
    ]
    assert parts["a.csv"]["key"] == key.fingerprint and parts["a.csv"]["version"] == 3
    assert parts["a.csv"]["artifact_sha256"] != parts["b.csv"]["artifact_sha256"]
    assert key.secret.hex() not in text and "né" not in text
    # The manifest tells which part is whose, although CSV has no notes.
    both = [made / "a.onnx", folder, made / "b.onnx", folder]
    assert "30 private labels of" in labeldp("estimate", *both).stdout
    alone = labeldp("estimate", made / "a.onnx", folder)
    assert alone.exit_code == 2 and "another artifact made" in alone.stderr


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_folder_of_parts_becomes_one_part(made, tmp_path, kind):
    table = tmp_path / "table"
    table.mkdir()
    for part in range(3):
        write(table / f"{part}.{kind}", range(100 * part, 100 * part + 100))
    if kind == "csv":  # without an end of the last row
        (table / "0.csv").write_bytes((table / "0.csv").read_bytes().rstrip(b"\n"))
    folder = tmp_path / "private"
    assert append(made, table, folder, "--part", "all").exit_code == 0
    rows = read(folder / f"all.{kind}")
    assert [name for name, _ in rows] == [f"né {row}" for row in range(300)]
    pq.write_table(pa.table({"id": ["x"], "y": [1]}), table / "3.parquet")
    if kind == "parquet":
        result = append(made, table, folder, "--part", "more")
        assert result.exit_code == 2 and "has other columns, types or delimiters" in result.stderr
        assert not (folder / "more.parquet").exists()


@pytest.mark.parametrize(
    ("spoil", "options", "words"),
    [
        (lambda f: (f / "stray.parquet").write_bytes(b"PAR1"), [], "was not added by --append"),
        (lambda f: (f / "one.parquet").unlink(), [], "is in the manifest but not in the folder"),
        (lambda f: (f / "_labeldp.json").write_text("{"), [], "is damaged"),
        (lambda f: (f / "_labeldp.json").unlink(), [], "holds files that no --append added"),
        (lambda f: None, ["--part", "two.csv"], "is not in the format of the other parts"),
        (lambda f: None, ["--part", "../two"], "is not the name of a part"),
        (lambda f: None, ["--part", "_two"], "is not the name of a part"),
        (lambda f: None, ["--part", "\x1b[31mtwo"], "is not the name of a part"),
        (lambda f: None, ["--column", "id"], "cannot be both the label and its id"),
        (lambda f: None, ["--add", "noisy"], "no column 'noisy'"),
    ],
)
def test_what_does_not_fit_changes_nothing(made, tmp_path, spoil, options, words):
    folder, table = tmp_path / "private", write(tmp_path / "t.parquet", range(10))
    assert append(made, table, folder, "--part", "one").exit_code == 0
    spoil(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = append(made, table, folder, *(options or ["--part", "two"]))
    assert result.exit_code == 2 and words in result.stderr, result.output
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_a_manifest_that_is_no_file_is_neither_waited_for_nor_followed(made, tmp_path, kind):
    folder, table = tmp_path / "private", write(tmp_path / "t.parquet", range(10))
    assert append(made, table, folder, "--part", "one").exit_code == 0
    manifest, elsewhere = folder / "_labeldp.json", tmp_path / "elsewhere"
    manifest.rename(elsewhere)
    if kind == "pipe":
        os.mkfifo(manifest)  # to wait for a writer would hang
    elif kind == "link":
        manifest.symlink_to(elsewhere)
    else:
        manifest.mkdir()
    results = [
        append(made, table, folder, "--part", "two"),
        labeldp("estimate", made / "a.onnx", folder),
    ]
    for result in results:
        assert result.exit_code == 2 and "_labeldp.json: is damaged" in result.stderr


@pytest.mark.parametrize("again", [False, True])
def test_a_folder_that_cannot_be_synced_keeps_the_part_that_is_listed(
    made, tmp_path, monkeypatch, again
):
    """Listed and not there, it would stop every later run: its ids would not be known."""
    table, folder = write(tmp_path / "day.parquet", range(99)), tmp_path / "private"
    sync, failed = whole_file.sync_folder, []

    def broken(path):
        if (again or not failed) and "day" in (folder / MANIFEST).read_text():
            failed.append(path)
            raise OSError(errno.EIO, "Input/output error")
        sync(path)

    with monkeypatch.context() as faults:
        faults.setattr(whole_file, "sync_folder", broken)
        done = append(made, table, folder)
    assert failed and done.exit_code == (2 if again else 0)
    assert ("is there and complete" in done.stderr) == again
    assert len(drawn(folder)["day.parquet"]) == 99
    later = append(made, write(tmp_path / "later.parquet", range(120)), folder)
    assert later.exit_code == 0 and len(drawn(folder)["later.parquet"]) == 21
