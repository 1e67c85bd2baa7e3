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
from labeldp_compile.cli.init import scalar
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
}
CSV = {name: arguments for name, arguments in PARQUET.items() if name not in ("named", "uniform")}


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
    return here


@pytest.mark.parametrize("case", sorted(PARQUET))
def test_the_spec_compiles(place, case):
    result = labeldp("init", "table.parquet", *PARQUET[case], "-o", "spec.yaml")
    assert result.exit_code == 0, result.output
    assert result.stdout == "spec.yaml\n"
    assert labeldp("plan", "spec.yaml").exit_code == 0
    compiled = labeldp("compile", "spec.yaml", "-o", "build")
    assert compiled.exit_code == 0, compiled.output


@pytest.mark.parametrize("case", sorted(CSV))
def test_the_spec_of_a_csv_file_compiles(place, case):
    kinds = {"visits": "integer", "cost": "real", "answer": "categorical", "code": "categorical"}
    kinds["grade"] = "categorical"
    arguments = CSV[case]
    if "--kind" not in arguments:
        arguments = [*arguments, "--kind", kinds[arguments[1]]]
    result = labeldp("init", "table.csv", *arguments, "--rows", ROWS, "-o", "spec.yaml")
    assert result.exit_code == 0, result.output
    assert labeldp("plan", "spec.yaml").exit_code == 0
    compiled = labeldp("compile", "spec.yaml", "-o", "build")
    assert compiled.exit_code == 0, compiled.output


def test_the_answers_are_in_the_spec(place):
    labeldp("init", "table.parquet", *PARQUET["real"], "--loss", "absolute", "-o", "spec.yaml")
    spec, _ = load_spec(place / "spec.yaml")
    assert spec.label.column == "cost" and spec.domain.points == 11
    assert float(spec.domain.max) == 100.5
    assert spec.loss == "absolute" and str(spec.privacy.epsilon) == "0.5"
    assert spec.prior.data == "table.parquet"
    assert spec.goal == "training" and "goal: training\n" in (place / "spec.yaml").read_text()


@pytest.mark.parametrize("mechanism", [[], ["--mechanism", "rr_on_bins"]])
def test_a_goal_goes_with_every_mechanism(place, mechanism):
    arguments = [*PARQUET["integer"], "--goal", "labels", *mechanism, "-o", "spec.yaml"]
    assert labeldp("init", "table.parquet", *arguments).exit_code == 0
    spec, _ = load_spec(place / "spec.yaml")
    assert spec.goal == "labels" and spec.named_mechanism.kind == "rr_on_bins"


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


def test_what_is_missing_is_asked_for_by_name(place):
    cases = {
        ("table.parquet", "--column", "visits"): "--range is missing",
        ("table.csv", "--column", "visits"): "--kind is missing (one of integer",
        ("table.parquet", "--column", "answer"): "--values is missing",
        ("table.parquet", "--column", "answer", "--values", "a,b"): "--default is missing",
    }
    for arguments, message in cases.items():
        for more in ([], ["--yes"]):
            result = labeldp("init", *arguments, *more)
            assert result.exit_code == 2 and message in result.stderr, result.output
    assert not list(place.glob("*.yaml"))


BAD = {
    "did you mean 'visits'?": ["--column", "visit", "--range", "0..9"],
    "is above max": ["--column", "visits", "--range", "9..0"],
    "expected LO..HI": ["--column", "visits", "--range", "0-9"],
    "--epsilon: expected a number": [*PARQUET["integer"], "--epsilon", "1\nloss: zero_one"],
    "privacy.epsilon: expected less": [*PARQUET["integer"], "--epsilon", "100"],
    "needs numbers": ["--column", "answer", "--kind", "integer", "--range", "0..9"],
    "labels are numbers or text": ["--column", "when", "--range", "0..9"],
    "--values: expected A,B": ["--column", "answer", "--values", "a\rb", "--default", "a"],
    "is not one of": ["--column", "answer", "--values", "yes,no", "--default", "maybe"],
    "a category is empty": ["--column", "answer", "--values", "yes,no,", "--default", "yes"],
    "is listed twice": ["--column", "answer", "--values", "yes,yes", "--default", "yes"],
    "--points is only for": [*PARQUET["integer"], "--points", "5"],
    "--values and --default are only for": [*PARQUET["integer"], "--values", "1,2"],
    "--range and --points are only for": [*PARQUET["text"], "--range", "0..1"],
    "--rows is only for": [*PARQUET["integer"], "--rows", "5"],
    "needs ordered labels": [*PARQUET["text"], "--mechanism", "laplace"],
    "there is no directory": [*PARQUET["integer"], "-o", "no/spec.yaml"],
}


@pytest.mark.parametrize("message", sorted(BAD))
def test_bad_answers_exit_2_with_one_message_and_no_file(place, message):
    result = labeldp("init", "table.parquet", *BAD[message])
    assert result.exit_code == 2, result.output
    assert message in result.stderr and result.stderr.count("\n") == 1
    assert not list(place.rglob("*.yaml")) and not list(place.glob(".*partial"))


def test_bad_files(place):
    (place / "empty.csv").write_bytes(b"")
    (place / "latin.csv").write_bytes(b"caf\xe9,b\n")
    (place / "not.parquet").write_bytes(b"junk")
    for name in ("empty.csv", "latin.csv", "not.parquet", "missing.csv", "x.xlsx"):
        result = labeldp("init", name, *PARQUET["integer"])
        assert result.exit_code == 2 and result.stderr.count("\n") == 1, name


def test_nothing_is_overwritten(place):
    (place / "visits.yaml").write_text("mine")
    result = labeldp("init", "table.parquet", *PARQUET["integer"])
    assert result.exit_code == 2 and "exists already" in result.stderr
    assert (place / "visits.yaml").read_text() == "mine"


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


WRONG_FIRST = {
    "cost": ["real", "100", "9..0", "0..100", "1", "many", "21", "", "a lot", "2", "", "", ""],
    "answer": ["", "yes,no", "maybe", "no", "", "one", "2", "", "", ""],
}


@pytest.mark.parametrize("column", sorted(WRONG_FIRST))
def test_on_a_terminal_a_wrong_answer_is_asked_for_again(place, column):
    answers = "\n".join([*WRONG_FIRST[column], ""])
    result = labeldp("init", "table.parquet", "--column", column, asked=answers)
    assert result.exit_code == 0, result.output
    assert result.stderr.count("Error: --") == {"cost": 5, "answer": 2}[column]
    spec, _ = load_spec(place / f"{column}.yaml")
    assert str(spec.privacy.epsilon) == "2"


REFUSED = {
    "when nothing fits but one": (
        ["--column", "answer", "--values", "yes,no", "--default", "no"],
        {"squared", "absolute", "poisson", "rr_on_bins", "optimal_unbiased", "laplace"},
        {"zero_one", "randomized_response", "rr_with_prior"},
    ),
    "no 0-1 loss of real labels": (
        ["--column", "cost", "--range", "0.5..100", "--points", "5"],
        {"zero_one"},
        {"squared", "absolute", "poisson", "laplace"},
    ),
    "no Poisson loss of negative labels": (
        ["--column", "visits", "--range", "-3..9"],
        {"poisson"},
        {"squared", "absolute", "zero_one", "staircase"},
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_question_offers_nothing_that_the_domain_refuses(place, case):
    arguments, absent, offered = REFUSED[case]
    result = labeldp("init", "table.parquet", *arguments, asked="\n" * 9)
    assert result.exit_code == 0, result.output
    choices = set(re.findall(r"\w+", " ".join(re.findall(r"\((.*?)\)", result.stderr))))
    assert not absent & choices and offered <= choices


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


def test_leaving_the_questions_writes_nothing_and_says_so(place):
    result = labeldp("init", "table.parquet", "--column", "visits", asked="integer\n")
    assert result.exit_code == 130 and result.stderr.endswith("labeldp: interrupted\n")
    assert not list(place.glob("*.yaml"))


@pytest.mark.parametrize("column", ["a: b", "#", "'", '"', "null", "true", "12", "ÿ é\u0085", "π"])
def test_any_column_name(place, column):
    table = pa.table({column: pa.array([1, 2, 3] * 100)})
    pq.write_table(table, place / "odd.parquet")
    arguments = ["--column", column, "--range", "1..3", "-o", "odd.yaml"]
    result = labeldp("init", "odd.parquet", *arguments)
    assert result.exit_code == 0, result.output
    spec, _ = load_spec(place / "odd.yaml")
    assert spec.label.column == column


def test_scalars_stay_text():
    assert scalar("plain") == "plain" and scalar(3) == "3"
    assert scalar("3") == '"3"' and scalar("true") == '"true"'


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (["--column", "answer", "--values", "yes,no", "--default", "no"], "categorical"),
        (["--column", "cost", "--points", "11", "--range", "0..100"], "real"),
    ],
)
def test_options_of_one_kind_say_the_kind_where_columns_have_no_type(place, options, kind):
    result = labeldp("init", "table.csv", *options, "--yes", "-o", "spec.yaml")
    assert result.exit_code == 0, result.output
    assert load_spec(place / "spec.yaml")[0].domain.kind == kind


def test_a_spec_is_called_like_its_file(place):
    for path, name in (("costs.yaml", "costs"), ("über/K 1.yaml", "K-1")):
        (place / path).parent.mkdir(exist_ok=True)
        result = labeldp("init", "table.parquet", *PARQUET["real"], "-o", path)
        assert result.exit_code == 0, result.output
        assert load_spec(place / path)[0].name == name


def test_decimal_commas_are_warned_of_where_a_semicolon_makes_them_likely(place):
    (place / "excel.csv").write_bytes(b"\xef\xbb\xbfid;cost;kind\r\n1;51,62;a\r\n2;7,00;b\r\n")
    numbers = ("--column", "cost", "--range", "0..100", "--points", "11", "--prior", "uniform")
    texts = ("--column", "kind", "--values", "a,b", "--default", "a", "--prior", "uniform")
    warned = {}
    for name, options in (("cost", numbers), ("kind", texts)):
        result = labeldp("init", "excel.csv", *options, "--delimiter", ";", "--yes")
        assert result.exit_code == 0, result.output
        assert labeldp("compile", f"{name}.yaml", "-o", ".", "--quiet").exit_code == 0
        words = "randomize", f"{name}.onnx", "excel.csv", "-o", f"{name}.csv", "--delimiter", ";"
        warned[name] = [("51,62" in r.stderr) for r in (result, labeldp(*words))]
    assert warned == {"cost": [True, True], "kind": [False, False]}
    assert "51,62" not in labeldp("init", "table.csv", *numbers, "-o", "other.yaml").stderr


@pytest.mark.parametrize(
    ("options", "loss", "said"),
    [
        ([], "squared", "no shares, histogram or quantiles"),
        (["--answers", "shares", "--epsilon", "0.5"], "zero_one", "number of a set"),
    ],
)
def test_counts_are_for_means_or_for_shares(place, options, loss, said):
    base = ["init", "table.parquet", "--column", "visits", "--range", "0..9", "-o", "spec.yaml"]
    done = labeldp(*base, *options)
    assert done.exit_code == 0 and said in done.output, done.output
    assert load_spec(place / "spec.yaml")[0].loss == loss
    again = [*base[:-1], "other.yaml", "--answers", "shares", "--loss", "squared"]
    assert labeldp(*again).exit_code == 2
