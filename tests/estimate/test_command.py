"""``labeldp estimate``: tables in, aggregates out, and refusals in words."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_runtime import Randomizer

from labeldp_compile.cli import main
from tests.fixtures.compiled import INTEGER_SPEC, compile_text

TEXT_SPEC = """
version: 1
name: words
label:
  column: y
  domain: {kind: categorical, values: [red, green, blue]}
  out_of_domain: {default: red}
loss: zero_one
privacy: {epsilon: 3.0}
prior: {kind: uniform}
mechanism: {kind: randomized_response}
"""
RESPONSE = INTEGER_SPEC.replace("rr_on_bins", "randomized_response").replace("1.0", "3.0")
N = 4000


def labeldp(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def artifact(directory, text=RESPONSE):
    path = directory / "x.onnx"
    path.write_bytes(compile_text(text).model)
    return path


def table(path, labels, **columns):
    private = Randomizer.load(path)(labels)
    return pa.table({"y": private, **columns})


@pytest.fixture
def private(tmp_path):
    """Labels whose mean is 2 in region north, 6 in region south and in no region."""
    path = artifact(tmp_path)
    labels = np.where(np.arange(N) % 2, 2, 6)
    regions = ["north" if i % 2 else "south" if i % 4 else None for i in range(N)]
    written = tmp_path / "private.parquet"
    pq.write_table(table(path, labels, region=regions), written, row_group_size=700)
    return path, written


def test_groups_and_histogram(private):
    result = labeldp("estimate", *private, "--by", "region", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["format_version"] == "1.0" and found["refused"] == {}
    assert found["classes"] == [[y] for y in range(10)]
    assert [g["group"] for g in found["groups"]] == ["all rows", "north", "south", None]
    assert [g["rows"] for g in found["groups"]] == [N, N // 2, N // 4, N // 4]
    for group, mean in zip(found["groups"], [4, 2, 6, 6], strict=True):
        # At least seven standard deviations: a quarter of the rows has one of 0.1.
        assert group["mean"]["low"] - 0.5 < mean < group["mean"]["high"] + 0.5
        assert abs(sum(entry["estimate"] for entry in group["histogram"]) - 1) < 1e-9
        assert abs(sum(entry["projected"] for entry in group["histogram"]) - 1) < 1e-9
    north = found["groups"][1]
    assert north["histogram"][2]["estimate"] > 0.85
    middle = next(q for q in north["quantiles"] if q["share"] == 0.5)
    assert middle["estimate"] == [2, 2] and middle["interval"] == [2, 2]


def test_groups_that_json_has_no_number_for(tmp_path):
    path, file = artifact(tmp_path), tmp_path / "private.parquet"
    groups = [1.5, float("inf"), float("-inf"), float("nan"), None]
    pq.write_table(table(path, np.zeros(100, int), g=groups * 20), file)
    printed = labeldp("estimate", path, file, "--by", "g", "--json").stdout
    found = json.loads(printed, parse_constant=pytest.fail)["groups"]
    assert [g["group"] for g in found] == ["all rows", "-inf", 1.5, "inf", "NaN", None]


def test_texts_that_read_like_other_values_are_quoted(tmp_path):
    path, file = artifact(tmp_path), tmp_path / "private.parquet"
    groups = ["null", None, "all rows", "", '"null"', "$\\bad{$"]
    pq.write_table(table(path, np.zeros(120, int), g=groups * 20), file)
    picture = tmp_path / "estimate.svg"
    asked = ("estimate", path, file, "--by", "g", "--plot", picture)
    lines = labeldp(*asked, "--verbose").stdout.splitlines()
    names = ["all rows", '""', '"\\"null\\""', "$\\bad{$", '"all rows"', '"null"', "null"]
    starts = [line.partition("  ")[0] for line in lines]
    assert [start for start in starts if start in names][: len(names)] == names
    drawn = picture.read_text(encoding="utf-8")
    assert (
        all(text in drawn for text in ('"null"', '>""<', "$\\bad{$")) and ">all rows<" not in drawn
    )
    again = labeldp(*asked)
    assert again.exit_code == 2 and "--overwrite" in again.stderr


@pytest.mark.parametrize("rows", [200, 400_000])
def test_an_interval_as_wide_as_all_values_says_nothing(tmp_path, rows):
    path, file = artifact(tmp_path, RESPONSE.replace("3.0", "0.1")), tmp_path / "private.parquet"
    pq.write_table(table(path, np.zeros(rows, int), g=["a", "b"] * (rows // 2)), file)
    said = labeldp("estimate", path, file, "--by", "g").stdout
    assert ("nothing is known" in said) == (rows == 200)


def test_csv_says_the_same_as_parquet(private, tmp_path):
    path, written = private
    copy = tmp_path / "private.csv"
    pa_csv.write_csv(pq.read_table(written), copy)
    found = []
    for file in (written, copy):
        document = json.loads(labeldp("estimate", path, file, "--by", "region", "--json").stdout)
        # A CSV file has no nulls, only empty cells.
        found.append({group["group"] or "": group["histogram"] for group in document["groups"]})
    assert found[0] == found[1] and len(found[0]) == 4


def test_text_labels(tmp_path):
    path = artifact(tmp_path, TEXT_SPEC)
    labels = ["red"] * 1500 + ["blue"] * 500
    for column in (lambda c: c, lambda c: c.dictionary_encode()):
        written = tmp_path / "private.parquet"
        private = table(path, labels)
        pq.write_table(pa.table({"y": column(private["y"].combine_chunks())}), written)
        found = json.loads(labeldp("estimate", path, written, "--json").stdout)
        assert found["classes"] == [["red"], ["green"], ["blue"]]
        shares = [entry["estimate"] for entry in found["groups"][0]["histogram"]]
        assert shares == pytest.approx([0.75, 0, 0.25], abs=0.08)
        assert set(found["refused"]) == {"mean", "quantiles"}


def column(values):
    return {"y": values}


@pytest.mark.parametrize(
    ("columns", "arguments", "message"),
    [
        (column([1.0, None]), [], "has nulls"),
        (column([1.0, 2.5]), [], "not outputs of"),
        (column([1.0, float("nan")]), [], "not outputs of"),
        (column([1.0, 10.0]), [], "not outputs of"),
        (column(pa.array([], pa.float64())), [], "has no rows"),
        (column([1.0]), ["--by", "yy"], "did you mean 'y'"),
        (column([1.0]), ["--column", "z"], "has no column 'z'"),
        ({"y": [1.0], "g": [[1]]}, ["--by", "g"], "cannot group by 'g'"),
        (column([1.0]), ["--plot", "x.png"], "ends in .svg"),
        (column(["a"]), [], "needs numbers"),
    ],
)
def test_wrong_input_is_explained(tmp_path, columns, arguments, message):
    path, written = artifact(tmp_path), tmp_path / "private.parquet"
    pq.write_table(pa.table(columns), written)
    result = labeldp("estimate", path, written, *arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "2.5" not in result.stderr  # it may be a true label
    assert result.stdout == ""


def test_categories_have_shares_for_each_group(tmp_path):
    path = artifact(tmp_path, TEXT_SPEC.replace("epsilon: 3.0", "epsilon: 8.0"))
    labels = ["red" if i % 2 else "blue" for i in range(N)]
    shops = ["a" if i % 2 else "b" for i in range(N)]
    pq.write_table(table(path, labels, shop=shops), tmp_path / "p.parquet")
    result = labeldp("estimate", path, tmp_path / "p.parquet", "--by", "shop", "-v")
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    start = lines.index(["shop", "label", "share", "low", "high", "projected"])
    shares = {tuple(line[:-4]): float(line[-1]) for line in lines[start + 1 : start + 10]}
    assert [key[-1] for key in shares] == 3 * ["red", "green", "blue"]
    assert shares["all", "rows", "red"] == pytest.approx(0.5, abs=0.1)
    assert min(shares["a", "red"], shares["b", "blue"]) > 0.9 and shares["b", "red"] < 0.1
    alone = labeldp("estimate", path, tmp_path / "p.parquet", "-v").stdout
    assert ["label", "share", "low", "high", "projected"] in map(str.split, alone.splitlines())


def test_one_more_group_is_shown_and_not_counted(tmp_path):
    path = artifact(tmp_path, TEXT_SPEC)
    said = {}
    for count in range(3, 9):
        shops = ["" if i % count == 0 else str(i % count) for i in range(N)]
        private = table(path, ["red"] * N, shop=shops)
        pq.write_table(private, tmp_path / f"{count}.parquet")
        words = "estimate", path, tmp_path / f"{count}.parquet", "--by", "shop"
        said[count] = labeldp(*words).stdout.splitlines()
    assert max(map(len, said.values())) <= 15
    assert not any("1 more groups" in line for lines in said.values() for line in lines)
    assert any(line.startswith('""  ') for line in said[3])


def test_many_groups_of_categories_are_cut_short(tmp_path):
    path = artifact(tmp_path, TEXT_SPEC)
    private = table(path, ["red"] * N, shop=[str(i % 200) for i in range(N)])
    pq.write_table(private, tmp_path / "p.parquet")
    said = labeldp("estimate", path, tmp_path / "p.parquet", "--by", "shop", "-v").stdout
    assert "the shares of 121 more groups: --json has them" in said
    document = json.loads(
        labeldp("estimate", path, tmp_path / "p.parquet", "--by", "shop", "--json").stdout
    )
    assert len(document["groups"]) == 201


def test_without_verbose_there_is_a_summary_whose_last_line_is_the_conclusion(private, tmp_path):
    for more in ([], ["--by", "region"], ["--target", "population"]):
        lines = labeldp("estimate", *private, *more).stdout.splitlines()
        assert len(lines) <= 15 and "95%" in lines[1] and "nothing" in lines[1]
        assert lines[-1].startswith("mean of y: ") and f"({N:,} rows)" in lines[-1]
        assert lines[-2].startswith("shares of y: ") and lines[-2].count("% ± ") == 5
        whole = labeldp("estimate", *private, *more, "--verbose").stdout.splitlines()
        assert whole[-2:] == lines[-2:] and len(whole) > len(lines)
    path = artifact(tmp_path, TEXT_SPEC)
    shops = [str(i % 200) for i in range(N)]
    pq.write_table(table(path, ["red"] * N, shop=shops), tmp_path / "p.parquet")
    lines = labeldp("estimate", path, tmp_path / "p.parquet", "--by", "shop").stdout.splitlines()
    assert len(lines) <= 15 and lines[-1].startswith("shares of y: red: ")
