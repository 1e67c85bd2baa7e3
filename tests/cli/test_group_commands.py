"""Commands that read an artifact with a table for each group, and those that cannot."""

import pytest
from labeldp_verify.forms import GroupColumn, Groups

from tests.artifact.test_group_maps import MAPS, randomizer_of
from tests.cli.test_cli import labeldp
from verifier.tests.files import DOMAIN, file_of


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("grouped") / "test.onnx"
    path.write_bytes(file_of(DOMAIN, randomizer_of(MAPS["bands and text"])))
    return path


def test_a_name_from_a_file_is_escaped_on_the_page(tmp_path):
    hostile = "<script>alert(1)</script>\x1b[31m"
    groups = Groups.each(GroupColumn(hostile, (hostile, "b", "c")))
    path, page = tmp_path / "x.onnx", tmp_path / "x.html"
    path.write_bytes(file_of(DOMAIN, randomizer_of(groups)))
    assert labeldp("report", path, "-o", page).exit_code == 0
    assert "<script>alert" not in page.read_text() and "\x1b" not in page.read_text()
    for command in (("report", path), ("verify", path), ("report", path, "--group", "b")):
        done = labeldp(*command)
        assert done.exit_code == 0 and "\x1b" not in done.stdout + done.stderr


def test_columns_of_groups_under_other_names(file, tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text("years,job,y\n20,private,11\n,x,12\n66,é,10\n")
    out = tmp_path / "out.csv"

    def randomize(*flags):
        return labeldp("randomize", file, table, "-o", out, "--overwrite", *flags)

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
    done = labeldp(
        "init", table, *answers, "--groups", "age:18,65", "--groups", "work", "--rows", 3
    )
    assert done.exit_code == 0, done.output
    assert "values: [private, self]" in spec.read_text() and "bands: [18, 65]" in spec.read_text()
    planned = labeldp("plan", spec)
    assert planned.exit_code == 0 and "groups" in planned.stdout
