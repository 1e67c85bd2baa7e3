"""A spec with groups from end to end: what is read, what is spent, what ships, what is refused."""

import json
import shutil
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_runtime import Randomizer
from labeldp_verify import check_file

from labeldp_compile.cli import main
from labeldp_compile.prior import obtain
from labeldp_compile.spec.agreement import check_file as check_with_spec
from tests.fixtures.specs import spec

BOTH = "{columns: [{column: age, bands: [18, 65]}, {column: work, values: [no, private, self]}]}"
WORK = "{column: work, values: [no, private, self]}"
ROWS = 6_000


def table(rows=ROWS, seed=0):
    """Labels near 0 for people without work, near 9 for those with work and of working age."""
    generator = np.random.default_rng(seed)
    age = generator.integers(0, 90, rows)
    work = generator.choice(["no", "private", "self", "elsewhere"], rows, p=[0.4, 0.3, 0.25, 0.05])
    busy = (work != "no") & (age >= 18) & (age < 65)
    y = np.where(busy, 9 - generator.poisson(1, rows), generator.poisson(1, rows)).clip(0, 9)
    return pa.table({"age": age, "work": work, "y": y})


class Place:
    """A folder with a table and a spec."""

    def __init__(self, folder):
        self.folder, self.out = folder, folder / "out"
        pq.write_table(table(), folder / "rows.parquet")
        self.write()

    def write(self, prior="kind: private, data: rows.parquet", **changes):
        # A large part for the prior makes little noise: what is asserted hangs on no draw.
        usual = {"goal": "labels", "epsilon": 2, "split": {"prior": 1, "label": 1}, "groups": BOTH}
        usual |= {"name": "weeks", "mechanism": "auto", "prior": f"{{{prior}}}"}
        (self.folder / "weeks.yaml").write_text(spec(**(usual | changes)))

    def run(self, *arguments):
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    def compile(self, *flags):
        return self.run("compile", self.folder / "weeks.yaml", "-o", self.out, *flags)

    @property
    def artifact(self):
        return self.out / "weeks.onnx"

    def certificate(self):
        return json.loads((self.out / "weeks.certificate.json").read_text())

    def message(self, **parts):
        self.write(**parts)
        result = self.compile()
        assert result.exit_code == 2, result.output
        assert not self.artifact.exists()
        return " ".join(result.stderr.split())


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture
def draws(monkeypatch):
    """The histograms that noise was drawn on: what was spent."""
    made, draw = [], obtain.noisy_histogram

    def drawn(counts, epsilon):
        made.append((list(counts), epsilon))
        return draw(counts, epsilon)

    monkeypatch.setattr(obtain, "noisy_histogram", drawn)
    return made


def test_from_a_table_to_private_labels_and_back(place, draws):
    result = place.compile()
    assert result.exit_code == 0, result.output
    rows = pq.read_table(place.folder / "rows.parquet").to_pandas()
    groups = place.certificate()["groups"]
    band = np.searchsorted([18, 65], rows["age"], side="right")
    cell = band * 3 + rows["work"].map({"no": 0, "private": 1, "self": 2})
    owners = np.array([*(groups["table_of_cell"] or range(9)), len(groups["tables"]) - 1])
    tables = owners[cell.fillna(9).astype(int)]
    sizes = np.bincount(tables, minlength=len(groups["tables"]))
    assert [one["size"] for one in groups["tables"]] == sizes.tolist()
    # Both levels were drawn on, each row is in both once, and the two add up to ε₁.
    (everything, pooled), (by_table, level) = draws
    assert sum(everything) == ROWS and sum(by_table) == sizes[:-1].sum()
    privacy = place.certificate()["exact"]
    assert pooled + level == Fraction(privacy["epsilon_prior"])
    assert Fraction(privacy["epsilon_prior"]) + Fraction(privacy["epsilon_label"]) == 2
    report = check_with_spec(place.artifact, place.folder / "weeks.yaml")
    assert report.ok, report.checks
    # The labels of a row are outputs of its own table.
    private = Randomizer.load(place.artifact)(rows["y"], columns=rows)
    windows = report.artifact.tables
    assert all(v in windows[t].values for v, t in zip(private, tables, strict=True))
    for name in ("rows.parquet", "rows.csv"):
        if name.endswith("csv"):
            pa_csv.write_csv(table(), place.folder / name)
        done = place.run("randomize", place.artifact, place.folder / name, "-o", "-")
        assert done.exit_code == 0, done.output
        cells = [line.split(",")[-1] for line in done.stdout.splitlines()[1:]]
        values = [float(cell) for cell in cells]
        assert all(v in windows[t].values for v, t in zip(values, tables, strict=True))


def test_counts_by_group_are_as_good_as_rows(place):
    seeded = ("--insecure-test-seed", "5", "--overwrite")
    assert place.compile(*seeded).exit_code == 0
    by_rows = place.certificate()["groups"]
    counted = table().group_by(["age", "work", "y"]).aggregate([([], "count_all")])
    pq.write_table(counted, place.folder / "counts.parquet")
    place.write(prior="kind: private, data: counts.parquet, counts: count_all")
    assert place.compile(*seeded).exit_code == 0
    assert place.certificate()["groups"] == by_rows


def test_groups_that_a_file_assigns(place):
    pa_csv.write_csv(
        pa.table({"job": ["self", "no", "private", "gone"], "team": ["b", "a", "b", ""]}),
        place.folder / "teams.csv",
    )
    groups = "{column: work, assign: {file: teams.csv, key: job, group: team}}"
    place.write(groups=groups)
    assert place.compile().exit_code == 0
    (column,), tables = (place.certificate()["groups"][k] for k in ("columns", "table_of_cell"))
    assert column["values"] == ["no", "private", "self"] and tables == [0, 1, 1]
    assert check_with_spec(place.artifact, place.folder / "weeks.yaml").ok
    pa_csv.write_csv(
        pa.table({"job": ["no", "private", "self"], "team": ["x", "y", "y"]}),
        place.folder / "teams.csv",
    )
    place.compile("--overwrite", "--insecure-test-seed", "1")
    renamed = place.certificate()["groups"]
    assert renamed["columns"][0]["values"] == column["values"]  # neither names nor order matter
    assert renamed["table_of_cell"] == tables
    shutil.rmtree(place.out)
    pa_csv.write_csv(
        pa.table({"job": ["no", "no"], "team": ["x", "y"]}), place.folder / "teams.csv"
    )
    assert "assigns one value of 'job' to two groups" in place.message(groups=groups)


def test_a_public_prior_by_group_costs_nothing(place, draws):
    place.write(prior="kind: public, data: rows.parquet", split=None)
    assert place.compile().exit_code == 0
    stated = place.certificate()
    assert stated["privacy"]["epsilon_prior"] == 0 and not draws
    assert stated["privacy"]["epsilon_label"] == 2
    assert {one["prior"]["kind"] for one in stated["groups"]["tables"]} == {"public"}
    assert check_file(place.artifact).ok


def test_few_rows_are_not_read(place, draws, once):
    pq.write_table(table(12), place.folder / "rows.parquet")
    once(obtain, "count_labels", lambda: pytest.fail("labels were read"))
    place.write(split=None)
    assert place.compile().exit_code == 0
    stated = place.certificate()
    assert stated["prior"]["kind"] == "uniform" and not draws
    assert len(stated["groups"]["tables"]) == 1  # all rows have the table of the others
    assert check_with_spec(place.artifact, place.folder / "weeks.yaml").ok
    private = Randomizer.load(place.artifact)(
        [1, 2], columns={"age": [3, 70], "work": ["no", None]}
    )
    assert len(private) == 2


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"groups": "{column: y, values: [1, 2]}"}, "cannot be its own group"),
        ({"groups": "{column: job, values: [a]}"}, "has no column 'job'"),
        ({"groups": "{column: work, values: [1, 2]}"}, "'work': expected integers as groups"),
        ({"groups": "{column: work, bands: [1, 2]}"}, "'work': expected numbers as groups"),
        ({"groups": "{column: work, values: [a, a]}"}, "a group occurs twice"),
        ({"groups": "{column: age, bands: [18, 18]}"}, "must increase"),
        ({"groups": "{column: work, assign: {file: no.csv, key: a, group: b}}"}, "no.csv"),
        ({"prior": "kind: uniform", "split": None}, "groups need a prior from data"),
        ({"mechanism": "laplace"}, "has one table for all rows"),
        ({"labels_per_user": 2, "unit": "person", "split": None}, "cannot both be given"),
    ],
)
def test_bad_groups_are_one_clear_error(place, parts, expected):
    assert expected in place.message(**parts)


def test_a_spec_that_says_other_groups_does_not_fit(place):
    assert place.compile().exit_code == 0
    for groups, expected in [
        (WORK, "different numbers of columns"),
        (BOTH.replace("age", "years"), "the spec says years"),
        (BOTH.replace("65", "64"), "values or bands of age differ"),
        (BOTH.replace("self", "own"), "values or bands of work differ"),
    ]:
        place.write(groups=groups)
        report = check_with_spec(place.artifact, place.folder / "weeks.yaml")
        assert expected in report.checks[-1].detail, report.checks[-1]
    text = (place.folder / "weeks.yaml").read_text().split("groups:")[0]
    (place.folder / "weeks.yaml").write_text(text)
    report = check_with_spec(place.artifact, place.folder / "weeks.yaml")
    assert "only the spec or only the file has them" in report.checks[-1].detail
