"""Commands that read an artifact with a table for each group, and those that cannot."""

import json
import re

import pytest
from click.testing import CliRunner
from labeldp_verify.forms import GroupColumn, Groups

from labeldp_compile import audit
from labeldp_compile.cli import main
from tests.artifact.test_group_maps import MAPS, randomizer_of
from verifier.tests.files import DOMAIN, file_of


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("grouped") / "test.onnx"
    path.write_bytes(file_of(DOMAIN, randomizer_of(MAPS["bands and text"])))
    return path


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_report_lists_all_tables_and_shows_one(file):
    shown = run("report", file)
    assert shown.exit_code == 0, shown.output
    assert "4 tables by age, work" in shown.stdout
    assert "age below 18, 'private' and 4 more" in shown.stdout and "\nother " in shown.stdout
    document = json.loads(run("report", file, "--json").stdout)
    assert [one["rows"] for one in document["groups"]] == [1, 4, 7, 10]
    assert document["columns"] == ["age", "work"]
    for group in ("20,é", "1e9,é", "other", "17.999,"):
        one = run("report", file, "--group", group)
        assert one.exit_code == 0, (group, one.output)
        assert "one row per label" in one.stdout
    for group in ("20", "x,é", "20,É", "20,é,1", "", "nan,é"):
        none = run("report", file, "--group", group)
        assert none.exit_code == 2 and "is not listed" in none.stderr, group
    assert run("report", file, "--label", "11").exit_code == 2


def test_a_report_draws_one_of_the_groups(file, tmp_path):
    page = tmp_path / "report.html"
    assert run("report", file, "-o", page).exit_code == 0
    text = page.read_text()
    assert 'id="groups"' in text and re.search(r"other and age 25 to 65.* \(shown below\)", text)
    assert "the largest ε of" in text
    chosen = run("report", file, "-o", page, "--overwrite", "--group", "20,é")
    assert chosen.exit_code == 0
    assert "age below 18, &#39;private&#39; and 4 more (shown below)" in page.read_text()
    assert run("report", file, "-o", page, "--overwrite", "--group", "no").exit_code == 2


def test_a_name_from_a_file_is_escaped_on_the_page(tmp_path):
    hostile = "<script>alert(1)</script>\x1b[31m"
    groups = Groups.each(GroupColumn(hostile, (hostile, "b", "c")))
    path, page = tmp_path / "x.onnx", tmp_path / "x.html"
    path.write_bytes(file_of(DOMAIN, randomizer_of(groups)))
    assert run("report", path, "-o", page).exit_code == 0
    assert "<script>alert" not in page.read_text() and "\x1b" not in page.read_text()
    for command in (("report", path), ("verify", path), ("report", path, "--group", "b")):
        done = run(*command)
        assert done.exit_code == 0 and "\x1b" not in done.stdout + done.stderr


def test_an_audit_is_of_one_group(file):
    report = audit(file, samples=100_000, processes=False, group="20,é")
    assert "group age below 18" in report.audited
    assert "group other" in run("audit", file, "--samples", 100_000, "--no-processes").stdout


def test_columns_of_groups_under_other_names(file, tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text("years,job,y\n20,private,11\n,x,12\n66,é,10\n")
    out = tmp_path / "out.csv"

    def randomize(*flags):
        return run("randomize", file, table, "-o", out, "--overwrite", *flags)

    assert "no column 'age'" in randomize().stderr
    names = ("--group-column", "age=years", "--group-column", "work=job")
    assert randomize(*names).exit_code == 0
    assert out.read_text().splitlines()[0] == "years,job,y"
    for flags in (
        ("--group-column", "years"),
        ("--group-column", "a=years"),
        ("--group-column", "age=years", "--group-column", "work=years"),
        ("--group-column", "age=y", "--group-column", "work=job"),
        ("--group-column", "age="),
    ):
        done = randomize(*flags)
        assert done.exit_code == 2 and done.stderr.splitlines()[-1], flags


def test_init_reads_features_and_never_the_label(tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text("age,work,y\n20,private,1\n40,self,9\n66,,3\n")
    spec = tmp_path / "y.yaml"
    answers = ("--column", "y", "--kind", "integer", "--range", "0..9", "--yes", "-o", spec)
    done = run("init", table, *answers, "--groups", "age:18,65", "--groups", "work", "--rows", 3)
    assert done.exit_code == 0, done.output
    assert "values: [private, self]" in spec.read_text() and "bands: [18, 65]" in spec.read_text()
    planned = run("plan", spec)
    assert planned.exit_code == 0 and "groups" in planned.stdout
