"""Pages of docs/: their blocks run, their commands print what is shown, their tables are whole."""

import re
import shlex

import polars as pl
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from PIL import Image

from benchmarks import accuracy, belief, drawings
from benchmarks.report_pictures import first_screen
from labeldp_compile.check import policy_schema
from labeldp_compile.check.policy import GatePolicy
from labeldp_compile.cli import main
from labeldp_compile.estimates.aggregates import COLUMNS
from labeldp_compile.tabular.provenance import ListedPart
from tests.docs.pages import DOCS, NOT_SHOWN, ROOT, follows, require_shown, run_page, text_of

SPEC = ROOT / "specs" / "doctor-visits.yaml"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A page → its run, made once."""
    runs = {}

    def page(name):
        if name not in runs:
            runs[name] = run_page(name, tmp_path_factory.mktemp("page"))
        return runs[name]

    return page


@pytest.mark.parametrize(
    "page",
    [
        *(
            "compile.md",
            "sweep.md",
            "persons.md",
            "nightly.md",
            "diff.md",
            "ledger.md",
            "project.md",
            "verify.md",
        ),
        pytest.param("policy.md", marks=pytest.mark.slow),
    ],
)
def test_the_commands_print_what_is_shown(ran, page):
    require_shown(ran(page))


def test_nightly_counts_rows_as_it_says(ran):
    """Draws are random, and rows are not."""
    counts = re.compile(r"([\d,]+ rows|[\d,]+ private labels of|[\d,]+ ids are)")
    commands = [it for it in ran("nightly.md").commands if "--quiet" not in it.words]
    assert commands
    for it in commands:
        if NOT_SHOWN not in it.shown:
            shown, printed = "\n".join(it.shown), "\n".join(it.printed)
            assert counts.findall(shown) == counts.findall(printed), it.words


def test_persons_prints_exactly_what_is_shown(ran):
    assert all(follows(it.shown, it.printed) for it in ran("persons.md").commands)


def test_persons_sql_cuts_as_randomize_does(ran):
    run = ran("persons.md")
    (cut,) = run.queries
    tables = {it.stem: pl.read_parquet(it) for it in run.folder.glob("*.parquet")}
    assert tables["customers"]["orders"].sum() == len(tables["orders"])
    assert cut["customer_id"].value_counts()["count"].max() == 4
    assert sorted(tables["private"]["ordered_at"]) == sorted(cut["ordered_at"])


def test_python_estimates_and_trains(ran):
    names = ran("python.md").names
    assert names["mean"]["low"] < names["mean"]["estimate"] < names["mean"]["high"]
    assert len(names["predicted"]) == 20_190 and "ε = 1" in names["result"].statement.paragraph()


def test_hosts_gives_private_labels(ran):
    names = ran("hosts.md").names
    assert names["private"].shape == (3,) and names["entropy"].type == "tensor(int64)"


def test_estimate_shows_the_form(ran):
    lines, shown = ran("estimate.md").printed("labeldp", "estimate")
    assert len(shown) == len(lines) and shown[:3] == lines[:3]
    assert shown[3].split() == lines[3].split()  # the header
    first = [[line.split()[0] for line in part if line] for part in (shown, lines)]
    assert first[0] == first[1]


def test_sql_gives_the_numbers_of_estimate(ran):
    run = ran("dashboards.md")
    wanted = {
        (row["hlthp"], row["statistic"], row["label"]): row
        for row in pq.read_table(run.folder / "estimates.parquet").to_pylist()
        if not row["all_rows"] and row["statistic"] != "quantile"
    }
    rows = run.queries[0].rows()
    assert len(wanted) == 2 * (1 + 10) and len(rows) == len(wanted)
    for group, statistic, label, estimate, error, count in rows:
        row = wanted[group, statistic, label]
        assert estimate == pytest.approx(row["estimate"], abs=1e-9) and count == row["rows"]
        if statistic == "mean" or 0 <= estimate <= 1:
            assert error == pytest.approx(row["standard_error"], rel=1e-6)


@pytest.mark.slow
def test_the_steps_of_the_pipeline_of_policy_pass(ran, inside):
    folder = ran("policy.md").folder
    inside(folder)
    pipeline = yaml.safe_load((folder / ".github/workflows/labels.yaml").read_text())
    steps = [step.get("run", "") for step in pipeline["jobs"]["gate"]["steps"]]
    steps = [shlex.split(step.partition(" > ")[0]) for step in steps if step.startswith("labeldp")]
    assert [CliRunner().invoke(main, words[1:]).exit_code for words in steps] == [0] * 4


def named(page, after, before="\n\n"):
    """The names in the first column of a table."""
    rows = text_of(page).split(after)[1].split(before)[0].splitlines()
    return {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_tables_of_fields_are_whole():
    keys = set(GatePolicy.model_fields) - {"version", "name"}
    assert named("policy-file.md", "| key | rule | for | worth |\n") == keys
    fields = {"format_version", "folder", "parts", *ListedPart.__annotations__}
    assert named("tables.md", "| field | is |\n") == fields
    explained = text_of("dashboards.md").partition("## One table")[2]
    explained = explained.partition("\n## ")[0]
    assert all(f"`{name}`" in explained for name in COLUMNS.names)


def test_the_committed_schema_is_that_of_the_policy():
    committed = (ROOT / "specs" / "labeldp-policy.schema.json").read_text(encoding="utf-8")
    assert committed == policy_schema(), "run: make schema"


def test_choose_epsilon_shows_the_tables_and_the_picture_of_its_script(tmp_path, capsys):
    belief.main(tmp_path)
    shown = text_of("choose-epsilon.md") + text_of("images/belief.svg")
    parts = [*capsys.readouterr().out.splitlines(), (tmp_path / "belief.svg").read_text("utf-8")]
    assert len(parts) == 18 and all(part in shown for part in parts)


def test_the_drawings_are_those_of_their_scripts(tmp_path):
    drawings.main(tmp_path)
    accuracy.main(tmp_path)
    drawn = {it.name: it.read_text("utf-8") for it in tmp_path.iterdir()}
    names = ("roles.svg", "choice.svg", "accuracy.svg")
    assert drawn == {name: text_of(f"images/{name}") for name in names}


def test_the_picture_of_a_report_has_the_sentences_that_the_command_writes(tmp_path):
    model, page = tmp_path / "doctor-visits.onnx", tmp_path / "page.html"
    for words in (("compile", SPEC, "-o", tmp_path), ("report", model, "-o", page, "--spec", SPEC)):
        assert CliRunner().invoke(main, [*map(str, words)]).exit_code == 0
    with Image.open(DOCS / "images" / "report.png") as picture:
        assert picture.text["sentences"] == first_screen(page)


def test_the_accuracies_of_the_picture_are_those_of_the_page():
    page = text_of("measured.md").partition("## Images")[2]
    for name, method in (("one release", "one release"), ("private labels, sets", "sets")):
        row = next(
            line for line in page.splitlines() if f"{name} |" in line and "MNIST" not in line
        )
        shown = [float(cell.split()[0]) for cell in row.split("|")[2:7]]
        drawn = [accuracy.accuracies(method, epsilon) for epsilon in ("0.1", "0.5", "1", "2", "4")]
        assert shown == [round(sum(values) / 5, 2) for values in drawn]
