"""``labeldp init``: a spec that compiles, from types and answers, without a look at a label."""

import io
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main
from labeldp_compile.spec import load_spec
from tests.fixtures.blank import without_rows

ROWS = 2000
GENERATOR = np.random.default_rng(1)
TABLE = pa.table(
    {
        "visits": pa.array(GENERATOR.poisson(2.0, ROWS)),
        "cost": pa.array(GENERATOR.random(ROWS) * 100),
        "answer": pa.array(GENERATOR.choice(["yes", "no", "it depends"], ROWS)),
        "code": pa.array(GENERATOR.choice([10, 20, 30], ROWS)),
        "grade": pa.array(GENERATOR.choice(["1", "2"], ROWS)).dictionary_encode(),
        "when": pa.array([0] * ROWS, pa.timestamp("s")),
    }
)
PARQUET = {
    "integer": ["--column", "visits", "--range", "0..20"],
    "zero-one": ["--column", "visits", "--range", "0..9", "--loss", "zero_one"],
    "real": ["--column", "cost", "--range", "0..100.5", "--points", "11", "--epsilon", "0.5"],
    "integer from floats": ["--column", "cost", "--kind", "integer", "--range", "-3..100"],
    "text": ["--column", "answer", "--values", 'yes,no,"it depends"', "--default", "no"],
    "grades": ["--column", "grade", "--values", "1,2,3", "--default", "3"],
    "codes": [
        *("--column", "code", "--kind", "categorical", "--values", "10,20,30"),
        *("--default", "20"),
    ],
    "named": ["--column", "visits", "--range", "0..20", "--mechanism", "laplace"],
    "goal": ["--column", "visits", "--range", "0..20", "--goal", "labels", "--loss", "absolute"],
    "uniform": ["--column", "visits", "--range", "0..20", "--prior", "uniform"],
    "quantile": ["--column", "visits", "--range", "0..20", "--loss", "quantile=0.9"],
    "two slopes": ["--column", "visits", "--range", "0..20", "--loss", "under=3,over=1"],
}


class Terminal(io.BytesIO):
    """Answers that come from a terminal."""

    def isatty(self):
        return True


def labeldp(*arguments, asked=None):
    """The command; ``asked`` are the answers that somebody at a terminal types."""
    answers = None if asked is None else Terminal(asked.encode())
    return CliRunner().invoke(main, [str(a) for a in arguments], input=answers)


@pytest.fixture
def place(here):
    pq.write_table(TABLE, here / "table.parquet")
    pa_csv.write_csv(TABLE, here / "table.csv")
    (here / "über").mkdir()
    return here


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("case", sorted(PARQUET))
def test_the_spec_compiles(place, case, ending):
    kinds = {"visits": "integer", "cost": "real"}
    column = PARQUET[case][1]
    more = []
    if ending == "csv" and "--kind" not in PARQUET[case]:  # its columns have no type
        more = ["--kind", kinds.get(column, "categorical")]
    more += ["--rows", ROWS] * (ending == "csv" and case != "uniform")
    name = f"table.{ending}"
    done = labeldp("init", name, *more, *PARQUET[case], "-o", "über/K 1.yaml")
    assert done.exit_code == 0, done.output
    assert done.stdout == "über/K 1.yaml\n" and "labeldp plan" in done.stderr
    spec, _ = load_spec(place / "über/K 1.yaml")
    assert (spec.name, spec.label.column) == ("K-1", column)
    assert labeldp("plan", "über/K 1.yaml").exit_code == 0
    if ending == "parquet":  # of a CSV file the spec is the same, but for its number of rows
        assert labeldp("compile", "über/K 1.yaml", "-o", "build").exit_code == 0


def test_no_label_of_a_parquet_file_is_read(place):
    # Nothing is left of the file but its footer, and of that the statistics are absent.
    pq.write_table(TABLE, place / "table.parquet", write_statistics=False)
    (place / "blank.parquet").write_bytes(without_rows(place / "table.parquet"))
    result = labeldp("init", "blank.parquet", *PARQUET["integer"], "-o", "blank.yaml")
    assert result.exit_code == 0, result.output
    labeldp("init", "table.parquet", *PARQUET["integer"], "-o", "table.yaml")
    blank = (place / "blank.yaml").read_text().replace("blank", "table")
    assert blank == (place / "table.yaml").read_text()


def test_statistics_in_the_footer_change_nothing(place):
    specs = []
    for low, high in ((0, 9), (5, 900)):
        column = pa.array([low, high] * 1000)
        pq.write_table(pa.table({"visits": column}), place / "table.parquet")
        result = labeldp("init", "table.parquet", *PARQUET["integer"], "-o", "spec.yaml")
        assert result.exit_code == 0
        specs.append((place / "spec.yaml").read_text())
        (place / "spec.yaml").unlink()
    assert specs[0] == specs[1]


def test_of_a_csv_file_only_the_header_is_read(place):
    # Bytes behind the header that no reader of CSV in UTF-8 would take.
    arguments = [*PARQUET["integer"], "--kind", "integer", "-o", "spec.yaml"]
    (place / "odd.csv").write_bytes(b'visits,"co,st"\n' + b"1,2\n" * 100_000 + b'\xff"\0,,,')
    result = labeldp("init", "odd.csv", *arguments)
    assert result.exit_code == 0, result.output
    # plan reads no CSV file either: who has to say the number of rows is told so, and where.
    assert "add its number of rows, then: labeldp plan spec.yaml" in result.stderr
    spec = (place / "spec.yaml").read_text()
    assert labeldp("plan", "spec.yaml").exit_code == 2
    assert spec.count("  # rows: N  #") == 1
    (place / "spec.yaml").write_text(spec.replace("  # rows: N  #", "  rows: 100000  #"))
    assert labeldp("plan", "spec.yaml").exit_code == 0


def test_on_a_terminal_it_asks(place):
    answers = ["real", "0..100", "21", "absolute", "2", "labels", "rr_on_bins", "uniform", ""]
    answers = "\n".join(answers)
    result = labeldp("init", "table.parquet", "--column", "cost", asked=answers)
    assert result.exit_code == 0, result.output
    spec, _ = load_spec(place / "cost.yaml")
    assert (spec.loss, spec.domain.points, spec.prior.kind) == ("absolute", 21, "uniform")
    assert spec.named_mechanism.kind == "rr_on_bins" and spec.goal == "labels"
    given = labeldp("init", "table.parquet", *PARQUET["integer"], "--yes", asked="")
    assert given.exit_code == 0 and "?" not in given.stderr
    left = labeldp("init", "table.parquet", "--column", "code", asked="integer\n")
    assert left.exit_code == 130 and left.stderr.endswith("labeldp: interrupted\n")
    assert not list(place.glob("code*"))


def test_every_mechanism_that_is_offered_makes_a_spec(place):
    base = ["--column", "visits", "--range", "0..9", "--epsilon", "1", "--prior", "uniform"]
    for loss in ("squared", "absolute", "poisson", "zero_one"):
        arguments = [*base, "--loss", loss, "--goal", "labels", "-o", f"{loss}.yaml"]
        asked = labeldp("init", "table.parquet", *arguments, asked="integer\n\n").stderr
        kinds = re.search(r"Which mechanism\? \((.*?)\)", asked)[1].split(", ")
        assert "auto" in kinds and len(kinds) >= 2
        for kind in kinds:
            given = [*arguments[:-1], f"{loss}-{kind}.yaml", "--mechanism", kind, "--yes"]
            assert labeldp("init", "table.parquet", *given).exit_code == 0, (loss, kind)


def test_a_file_of_costs_is_relative_to_the_spec(place):
    (place / "costs.csv").write_text("y,1,2\n1,0,3\n2,1,0\n")
    given = ["--column", "grade", "--values", "1,2", "--default", "1", "--loss", "matrix=costs.csv"]
    given += ["--epsilon", "1", "--prior", "uniform", "--goal", "labels", "-o", "there/it.yaml"]
    (place / "there").mkdir()
    asked = labeldp("init", "table.parquet", *given, asked="\n\n")
    assert asked.exit_code == 0 and "exponential, least_cost" in asked.stderr
    assert load_spec(place / "there" / "it.yaml")[0].stated_loss == "{matrix: ../costs.csv}"


@pytest.mark.parametrize(
    ("loss", "message"),
    {
        "quantile=high": "expected a number",
        "quantile=2": "above 0 and below 1",
        "quantil=0.9": "expected one of {quantile: NUMBER}",
        "quantile=0.9,quantile=0.8": "is given twice",
        "absolut": "did you mean 'absolute'?",
        "matrix=none.csv": "none.csv: cannot be read",
        "squared\nname: other": "is unknown",
    }.items(),
)
def test_a_wrong_loss_is_one_error(place, loss, message):
    given = ["--column", "visits", "--range", "0..9", "--loss", loss, "-o", "it.yaml", "--yes"]
    done = labeldp("init", "table.parquet", *given)
    assert done.exit_code == 2 and message in done.stderr and not (place / "it.yaml").exists()


@pytest.mark.parametrize("column", ["a: b", "#", "'", '"', "null", "true", "12", "ÿ é\u0085", "π"])
def test_any_column_name(place, column):
    table = pa.table({column: pa.array([1, 2, 3] * 100)})
    pq.write_table(table, place / "odd.parquet")
    arguments = ["--column", column, "--range", "1..3", "-o", "odd.yaml"]
    result = labeldp("init", "odd.parquet", *arguments)
    assert result.exit_code == 0, result.output
    spec, _ = load_spec(place / "odd.yaml")
    assert spec.label.column == column
