"""The label in the place of a public group: the artifact would hold it, and verify."""

import json
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main
from labeldp_compile.prior import group_cells
from tests.fixtures.specs import spec

ROWS, LABELS = 20_000, 10


class Attack:
    """A table of ids and labels, and a spec that takes a column of some file for the group."""

    def __init__(self, folder):
        self.folder, self.out = folder, folder / "out"
        self.labels = np.random.default_rng(3).integers(0, LABELS, ROWS)
        self.rows = pa.table({"id": np.arange(ROWS), "y": self.labels})
        pq.write_table(self.rows, folder / "t.parquet")

    def spec(self, **parts):
        path = self.folder / "visits.yaml"
        assign = {"file": "t.parquet", "key": "id", "group": "y"}
        prior = {"kind": parts.pop("prior", "private"), "data": "t.parquet"}
        prior |= {key: parts.pop(key) for key in ("data", "counts") if key in parts}
        assign |= {key: parts.pop(key) for key in assign if key in parts}
        groups = {"column": "id", "assign": assign}
        usual = {"name": "visits", "goal": "labels", "epsilon": 4}
        path.write_text(spec(**{**usual, "prior": prior, "groups": groups, **parts}))
        return path

    def run(self, command, *arguments, **parts):
        words = [command, str(self.spec(**parts)), *map(str, arguments)]
        return CliRunner().invoke(main, words)

    def read_off(self):
        """How many labels follow from the certificate, but for the names of the groups."""
        groups = json.loads((self.out / "visits.certificate.json").read_text())["groups"]
        ids, tables = groups["columns"][0]["values"], np.array(groups["table_of_cell"])
        labels = self.labels[np.array(ids)]
        name = {table: labels[tables == table][0] for table in set(tables.tolist())}
        return sum(name[table] == y for table, y in zip(tables.tolist(), labels, strict=True))

    def refusals(self, **parts):
        """What plan and compile say, which must both refuse, and alike for every label."""
        said = []
        for command, more in (("plan", ()), ("compile", ("-o", self.out))):
            result = self.run(command, *more, **parts)
            assert result.exit_code == 2, result.output
            assert not result.stdout and not self.out.exists()
            said.append(" ".join(result.stderr.split()))
        assert said[0] == said[1]
        return said[0]


@pytest.fixture
def attack(tmp_path):
    return Attack(tmp_path)


@pytest.mark.parametrize("goal", ["labels", "training"])
@pytest.mark.parametrize("prior", ["private", "public"])
def test_the_label_of_the_same_file_is_no_group(attack, goal, prior):
    said = attack.refusals(goal=goal, prior=prior)
    assert "groups.assign.group: 'y' is the label" in said
    # Nor does the refusal tell anything of the labels: others are refused in the same words.
    pq.write_table(
        attack.rows.set_column(1, "y", pa.array([7] * ROWS)), attack.folder / "t.parquet"
    )
    assert attack.refusals(goal=goal, prior=prior) == said


def test_a_copy_under_other_names_is_only_declared_and_everybody_says_so(attack):
    """No name and no file gives it away: the attack works, and the reader is told who answers
    for the groups, and that they are odd.
    """
    copy = attack.rows.rename_columns(["key", "team"])
    pq.write_table(copy, attack.folder / "teams.parquet")
    parts = {"file": "teams.parquet", "key": "key", "group": "team"}
    planned = attack.run("plan", **parts)
    compiled = attack.run("compile", "-o", attack.out, **parts)
    verified = CliRunner().invoke(main, ["verify", str(attack.out / "visits.onnx")])
    assert [run.exit_code for run in (planned, compiled, verified)] == [0, 0, 0]
    assert attack.read_off() == ROWS
    declared = "declared by the author of the spec to be public, not proved"
    odd = "about as many values of 'id' are listed as there are rows"
    for said in (planned.stdout, compiled.stderr):
        assert declared in said and odd in said
    assert "by id: declared public by the author of the spec, not proved" in verified.stdout
    assert f"warning: {odd}" in verified.stdout
    stated = json.loads((attack.out / "visits.certificate.json").read_text())
    assert stated["groups"]["assignment"].startswith("declared by the author of the spec")
    assert "groups.assignment" in stated["fields"]["declared"]


@pytest.mark.parametrize("name", ["y", "Y", " y", "y "])
@pytest.mark.parametrize("key", ["key", "group"])
def test_no_column_of_the_assigning_file_is_named_as_the_label(attack, key, name):
    columns = {"key": "id", "group": "team"} | {key: name}
    copy = attack.rows.rename_columns([columns["key"], columns["group"]])
    pq.write_table(copy, attack.folder / "teams.parquet")
    said = attack.refusals(file="teams.parquet", **columns)
    assert f"groups.assign.{key}: {name!r} is the label" in said


def _same(folder):
    return "t.parquet", "t.parquet"


def _symlink(folder):
    (folder / "teams.parquet").symlink_to("t.parquet")
    return "t.parquet", "teams.parquet"


def _hard_link(folder):
    os.link(folder / "t.parquet", folder / "teams.parquet")
    return "t.parquet", "teams.parquet"


def _part(folder):
    (folder / "parts").mkdir()
    shutil.copy(folder / "t.parquet", folder / "parts" / "0.parquet")
    shutil.move(folder / "t.parquet", folder / "parts" / "1.parquet")
    return "parts", "parts/1.parquet"


ALIASES = [_same, _symlink, _hard_link, _part]


@pytest.mark.parametrize("alias", ALIASES)
def test_the_labels_data_assign_no_groups_whatever_they_are_called(attack, alias, monkeypatch):
    rows = attack.rows.append_column("team", attack.rows["y"])
    pq.write_table(rows, attack.folder / "t.parquet")
    data, file = alias(attack.folder)
    monkeypatch.setattr(group_cells, "_assignments", lambda *a: 1 / 0)  # it is not even read
    said = attack.refusals(data=data, file=file, group="team")
    assert "is the data of the label 'y': groups are public" in said


def test_a_histogram_of_the_label_assigns_no_groups(attack):
    counts = attack.rows.append_column("team", attack.rows["y"]).append_column(
        "n", pa.array([1] * ROWS)
    )
    pq.write_table(counts, attack.folder / "t.parquet")
    said = attack.refusals(counts="n", group="team")
    assert "is the data of the label" in said


@pytest.mark.parametrize("name", ["y", "Y"])
@pytest.mark.parametrize(
    "groups", ["{{column: {0}, values: [1, 2]}}", "{{columns: [{{column: {0}, bands: [3]}}]}}"]
)
def test_the_column_of_the_groups_is_not_named_as_the_label(attack, groups, name):
    path = attack.spec()
    text = path.read_text().split("groups:")[0]
    path.write_text(f"{text}groups: {groups.format(name)}\n")
    result = CliRunner().invoke(main, ["plan", str(path)])
    assert result.exit_code == 2 and "cannot be its own group" in result.stderr


def test_init_takes_no_column_for_a_group_that_may_be_the_label(attack):
    rows = attack.rows.append_column("Y", attack.rows["y"])
    pq.write_table(rows, attack.folder / "t.parquet")
    out = attack.folder / "new.yaml"
    arguments = ["init", str(attack.folder / "t.parquet"), "--column", "y", "--range", "0..9"]
    for name in ("y", "Y", "Y:3"):
        result = CliRunner().invoke(main, [*arguments, "--groups", name, "-o", str(out), "--yes"])
        assert result.exit_code == 2 and "is the label" in result.stderr, result.output
        assert not out.exists()


def test_a_spec_whose_file_names_the_label_fits_no_artifact(attack):
    parts = {"file": "teams.csv", "key": "key", "group": "team"}
    teams = pa.table({"key": np.arange(0, ROWS), "team": np.arange(ROWS) % 3})
    pa_csv.write_csv(teams, attack.folder / "teams.csv")
    assert attack.run("compile", "-o", attack.out, **parts).exit_code == 0
    path = attack.spec(**{**parts, "group": "y"})
    artifact = str(attack.out / "visits.onnx")
    result = CliRunner().invoke(main, ["verify", artifact, "--spec", str(path)])
    assert result.exit_code == 1 and "groups.assign.group: y is the label" in result.stdout


@pytest.mark.parametrize("goal", ["labels", "training"])
def test_what_is_refused_or_warned_of_counts_no_values_of_a_group(attack, goal):
    """Where the groups are labels after all, how many values a group has is a count of labels."""
    copy = attack.rows.rename_columns(["key", "team"])
    pq.write_table(copy, attack.folder / "teams.parquet")
    parts = {"file": "teams.parquet", "key": "key", "group": "team", "mechanism": "rr_with_prior"}
    result = attack.run("compile", "-o", attack.out, goal=goal, prior="public", **parts)
    assert result.exit_code == (2 if goal == "training" else 0), result.output
    warned = [line for line in result.stderr.splitlines() if "every label becomes" in line]
    assert warned
    counts = {f"{n - less:,}" for n in np.bincount(attack.labels) for less in (0, 1)}
    assert not [count for count in counts if any(count in line for line in warned)]
