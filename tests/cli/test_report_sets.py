"""``labeldp report --sets``: the table that private labels are joined with."""

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main
from tests.fixtures.compiled import compile_text
from tests.mechanisms.test_subset_selection import text_of


def labeldp(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def artifact(tmp_path):
    return compile_text(text_of(6, 0.5, "é; x")).write(tmp_path)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_every_label_of_every_set_is_a_row(artifact, tmp_path, ending):
    out = tmp_path / f"sets.{ending}"
    result = labeldp("report", artifact, "--sets", out)
    assert result.exit_code == 0, result.output
    table = (pq.read_table if ending == "parquet" else pc.read_csv)(out)
    assert table.column_names == ["set", "label"]
    found = {}
    for row in table.to_pylist():
        found.setdefault(row["set"], []).append(row["label"])
    randomizer = compile_text(text_of(6, 0.5, "é; x")).randomizer
    labels = [f"é; x {i}" for i in range(6)]
    assert found == {
        o: [labels[y] for y in randomizer.sets.members(o)] for o in range(randomizer.outputs)
    }
    assert labeldp("report", artifact, "--sets", out).exit_code == 2
    assert labeldp("report", artifact, "--sets", out, "--overwrite").exit_code == 0


def test_what_has_no_sets_is_refused_and_nothing_is_left(artifact, tmp_path):
    other = compile_text(text_of(4, 5).replace("subset_selection", "randomized_response"))
    result = labeldp("report", other.write(tmp_path / "other"), "--sets", tmp_path / "x.csv")
    assert result.exit_code == 2 and "not sets of labels" in result.stderr
    result = labeldp("report", artifact, "--sets", tmp_path / "x.csv", "--label", "nobody")
    assert result.exit_code == 2 and "nobody" in result.stderr
    result = labeldp("report", artifact, "--sets", tmp_path / "x.txt")
    assert result.exit_code == 2 and ".parquet" in result.stderr
    assert not list(tmp_path.glob("x.*"))


def test_single_labels_are_sets_of_one(tmp_path):
    single = compile_text(text_of(4, 5)).write(tmp_path)
    assert labeldp("report", single, "--sets", tmp_path / "x.csv").exit_code == 0
    found = pc.read_csv(tmp_path / "x.csv")
    assert (
        found["set"].to_pylist() == found["label"].to_pylist() == [f"class {i}" for i in range(4)]
    )


def test_what_is_in_a_set_is_shown(artifact):
    result = labeldp("report", artifact, "-v")
    assert "the set" in result.output and "é; x 0, é; x 1" in result.output
    assert "in the set" in result.output and "unchanged" not in result.output
