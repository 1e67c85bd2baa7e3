"""Labels of several columns in tables: counted, randomized in place, kept beside, and estimated."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_runtime import Randomizer

from labeldp_compile import estimate
from labeldp_compile.cli import main
from labeldp_compile.prior.histogram import count_labels
from labeldp_compile.tabular.provenance import read_note
from labeldp_compile.tabular.reader import open_table
from tests.fixtures.compiled import compile_text, joint_spec

N = 4_000
SOLD, CODES = ["no", "yes", "é"], [7, -3]


@pytest.fixture(scope="module")
def truth():
    """Columns of which none is independent of the others."""
    generator = np.random.default_rng(0)
    sold = generator.choice(3, N, p=[0.6, 0.3, 0.1])
    value = np.where(sold == 1, generator.integers(0, 3, N), -1)
    code = np.where(value > 0, 7, generator.choice([7, -3], N))
    return pa.table(
        {
            "code": code,
            "x": generator.normal(size=N).round(3),
            "sold": [SOLD[i] for i in sold],
            "id": np.arange(N),
            "value": value,
        }
    )


def commands(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def files(tmp_path, truth):
    """A table as Parquet and as CSV, and artifacts: of columns, and of sets."""
    pq.write_table(truth, tmp_path / "t.parquet")
    pa_csv.write_csv(truth, tmp_path / "t.csv")
    compile_text(joint_spec(epsilon=4)).write(tmp_path)
    sets = joint_spec("{kind: subset_selection}", 1, loss="zero_one").replace("joint", "sets")
    compile_text(sets).write(tmp_path)
    return tmp_path


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_combinations_are_counted(files, suffix, truth):
    domain = compile_text(joint_spec()).only.domain
    path = files / f"t.{suffix}"
    table = open_table(path, ["sold", "value", "code"], domain, all_columns=False)
    rows = zip(*(truth[name].to_pylist() for name in ("sold", "value", "code")), strict=True)
    wanted = Counter((SOLD.index(s) * 4 + v + 1) * 2 + CODES.index(c) for s, v, c in rows)
    assert count_labels(table)[0].tolist() == [wanted[number] for number in range(24)]


def test_a_private_prior_of_combinations_is_paid_for_once(files):
    prior = "{kind: private, data: t.parquet, data_set: d, data_version: v}"
    text = joint_spec("{kind: rr_with_prior}", 2, prior=prior)
    text = text.replace(
        "{epsilon: 2}", "{epsilon: 2, split: {prior: 0.5, label: 1.5}, ledger: l.db}"
    )
    (files / "s.yaml").write_text(text)
    ledger = files / "l.db"
    commands("ledger", "init", ledger)
    commands("ledger", "set-budget", ledger, "--data-set", "d", "--epsilon", "0.5")
    commands("ledger", "set-budget", ledger, "--data-set", "e", "--epsilon", "9")
    found = []
    for name in ("one", "two"):
        commands("compile", files / "s.yaml", "-o", files / name)
        found.append(json.loads((files / name / "joint.certificate.json").read_text())["prior"])
    assert found[0] == found[1] and found[0]["rows"] == N
    # One of the columns alone has no second budget either.
    label = "label: {column: value, domain: {kind: integer, min: -1, max: 2}}\nloss: squared\n"
    rest = text[text.index("privacy:") :].replace("data_set: d", "data_set: e")
    (files / "other.yaml").write_text(f"version: 1\nname: other\n{label}{rest}")
    result = CliRunner().invoke(main, ["compile", str(files / "other.yaml"), "-o", str(files)])
    assert result.exit_code == 2 and "the same labels have one budget" in result.output


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_each_private_column_takes_the_place_of_its_own(files, suffix, truth):
    out = files / f"o.{suffix}"
    commands("randomize", files / "joint.onnx", files / f"t.{suffix}", "-o", out)
    read = pq.read_table(out) if suffix == "parquet" else pa_csv.read_csv(out)
    assert read.column_names == truth.column_names
    for name in ("x", "id"):
        assert read[name].to_pylist() == truth[name].to_pylist()
    assert set(read["sold"].to_pylist()) == set(SOLD)
    assert set(read["value"].to_pylist()) == {-1, 0, 1, 2}
    assert set(read["code"].to_pylist()) == set(CODES)
    same = [
        np.mean([a == b for a, b in zip(read[c].to_pylist(), truth[c].to_pylist(), strict=True)])
        for c in ("sold", "value", "code")
    ]
    assert min(same) > 0.7  # at ε = 4, a combination is kept with probability 0.70
    if suffix == "parquet":
        notes = read_note(out, pq.read_schema(out).metadata)
        assert set(notes) == {"sold", "value", "code"}
        again = CliRunner().invoke(
            main, ["randomize", str(files / "joint.onnx"), str(out), "-o", str(files / "p.parquet")]
        )
        assert again.exit_code == 2 and "already holds private labels" in again.output


def test_private_columns_may_stand_beside_the_true_ones(files, truth):
    for suffix in ("csv", "parquet"):
        out = files / f"a.{suffix}"
        commands("randomize", files / "joint.onnx", files / f"t.{suffix}", "-o", out, "--add", "p")
        read = pq.read_table(out) if suffix == "parquet" else pa_csv.read_csv(out)
        assert read.column_names == [*truth.column_names, "p_sold", "p_value", "p_code"]
        assert read["sold"].to_pylist() == truth["sold"].to_pylist()
    found = estimate(files / "joint.onnx", out, ["p_sold", "p_value", "p_code"])
    assert found.columns == ["p_sold", "p_value", "p_code"]


def test_a_set_replaces_all_columns_by_its_number(files, truth):
    for suffix in ("csv", "parquet"):
        out = files / f"s.{suffix}"
        commands("randomize", files / "sets.onnx", files / f"t.{suffix}", "-o", out)
        read = pq.read_table(out) if suffix == "parquet" else pa_csv.read_csv(out)
        assert read.column_names == ["x", "private_label", "id"]
        assert read["x"].to_pylist() == truth["x"].to_pylist()
        assert pa.types.is_int64(read["private_label"].type)
    table = files / "which.csv"
    commands("report", files / "sets.onnx", "--sets", table)
    members = pa_csv.read_csv(table).to_pylist()
    first = [(row["sold"], row["value"], row["code"]) for row in members if row["set"] == 0]
    assert first == Randomizer.load(files / "sets.onnx").members(0)


def test_a_key_makes_it_repeatable(files, truth):
    commands("keygen", files / "k.key")
    arguments = ["randomize", files / "joint.onnx", files / "t.parquet", "--key", files / "k.key"]
    for name in ("one", "two"):
        commands(*arguments, "--id-column", "id", "-o", files / f"{name}.parquet")
    one, two = ((files / f"{name}.parquet").read_bytes() for name in ("one", "two"))
    assert one == two
    keyed = Randomizer.load(
        files / "joint.onnx", key=files / "k.key", context='["sold","value","code"]'
    )
    drawn = keyed(truth.select(["sold", "value", "code"]), ids=truth["id"].to_numpy())
    read = pq.read_table(files / "one.parquet")
    assert all(read[name].to_pylist() == drawn[name].to_pylist() for name in drawn)


def test_estimates_of_combinations_and_of_each_column(files, truth):
    out = files / "o.parquet"
    commands("randomize", files / "joint.onnx", files / "t.parquet", "-o", out)
    group = estimate(files / "joint.onnx", out).groups[0]
    assert [column.name for column in group.columns] == ["sold", "value", "code"]
    for column in group.columns:
        true = truth[column.name].to_pylist()
        for i, label in enumerate(column.labels):
            interval = column.histogram.at(i)
            share, half = true.count(label) / N, (interval["high"] - interval["low"]) / 2
            assert abs(interval["estimate"] - share) < 3 * half  # six standard deviations
        # A share of a column is the sum of the shares of its combinations.
        domain = compile_text(joint_spec()).only.domain
        j = ["sold", "value", "code"].index(column.name)
        sums = np.zeros(len(column.labels))
        for number in range(24):
            sums[domain.places_of(number)[j]] += group.histogram.at(number)["estimate"]
        assert sums == pytest.approx([column.histogram.at(i)["estimate"] for i in range(len(sums))])
    mean = group.columns[1].mean.at(0)
    assert (
        abs(mean["estimate"] - np.mean(truth["value"].to_numpy()))
        < 3 * (mean["high"] - mean["low"]) / 2
    )
    assert group.columns[0].mean is None
    document = json.loads(commands("estimate", files / "joint.onnx", out, "--json"))
    assert document["groups"][0]["columns"][1]["mean"]["estimate"] == mean["estimate"]
    assert document["classes"][0] == ["no & -1 & 7"]


def test_pandas_reads_a_table_whose_index_was_a_label(files, truth):
    for index in ("value", "sold", "x"):
        source, out = files / "i.parquet", files / f"i-{index}.parquet"
        truth.to_pandas().set_index(index).to_parquet(source)
        commands("randomize", files / "sets.onnx", source, "-o", out)
        frame = pd.read_parquet(out)
        assert "private_label" in frame and not {"sold", "value", "code"} & {*frame.columns}
        assert (frame.index.name == "x") == (index == "x")


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4, 5), (4, 5, 2, 0, 1, 3), (5, 0, 1, 3, 2, 4)])
def test_where_columns_go_csv_keeps_every_other_byte(files, order):
    rows = [line.split(",") for line in ("x,y,sold,id,value,code", ' 1.50,"",no,007,1,7')]
    rows.append([" 2 ", '"é  ""b"""', '"yes"', "+1", '"-1"', "-3"])
    ends = ["\n", "\r\n", "\n"]
    text = "".join(
        ",".join(row[i] for i in order) + end for row, end in zip(rows, ends, strict=True)
    )
    (files / "q.csv").write_text(text, newline="")
    commands("randomize", files / "sets.onnx", files / "q.csv", "-o", files / "r.csv")
    kept = [i for i in order if i not in (4, 5)]  # sold, the first of the label, is replaced
    lines = (files / "r.csv").read_bytes().decode().splitlines(keepends=True)
    for number, (line, row, end) in enumerate(zip(lines, rows, ends, strict=True)):
        cells = line.removesuffix(end).split(",")
        assert line.endswith(end) and len(cells) == 4
        for cell, i in zip(cells, kept, strict=True):
            if i != 2:
                assert cell == row[i]
            else:
                assert cell == "private_label" if number == 0 else int(cell) >= 0
