"""``labeldp audit`` of tables with the predictions of a model."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_learn import model_audit

from labeldp_compile.cli import audit as command
from labeldp_compile.cli import main


def run(*arguments):
    return CliRunner().invoke(main, ["audit", *map(str, arguments)])


def predicted(rows, seed, *, knows):
    """A model that knows the labels of its rows, or has learned something of them."""
    random = np.random.default_rng(seed)
    x = random.normal(size=rows)
    y = np.where(x + random.logistic(size=rows) > 0, "yes", "no")
    usual = 1 / (1 + np.exp(-x))
    found = np.where(y == "yes", 0.97, 0.03) if knows else usual
    town = random.choice(["a", "b", None], rows)
    columns = {"x": x, "town": town, "bought": y, "probability_no": 1 - found}
    return pa.table(columns | {"probability_yes": found})


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.setattr(model_audit, "system_random", lambda: np.random.default_rng(7))
    pq.write_table(predicted(1000, 0, knows=True), tmp_path / "trained.parquet")
    pq.write_table(predicted(1000, 1, knows=False), tmp_path / "rest.parquet")
    pq.write_table(predicted(1000, 2, knows=False), tmp_path / "fresh.parquet")
    pc.write_csv(predicted(1000, 2, knows=False).select([0, 1, 2, 3, 4]), tmp_path / "fresh.csv")
    return tmp_path


def test_a_model_that_knows_its_labels_breaks_its_claim(tables):
    result = run(
        tables / "trained.parquet",
        *("--untrained", tables / "rest.parquet", "--label", "bought", "--epsilon", "1"),
    )
    assert result.exit_code == 1, result.output
    assert "VIOLATION" in result.stdout and "stated is 1" in result.stdout


def test_one_that_does_not_passes_in_csv_and_parquet(tables):
    for name in ("fresh.parquet", "fresh.csv"):
        result = run(
            *(tables / name, "--untrained", tables / "rest.parquet", "--label", "bought"),
            *("--epsilon", "1", "--delta", "1e-6", "--confidence", "0.9", "--json"),
        )
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        assert found["ok"] and found["epsilon_lower_bound"] <= 1 and found["confidence"] == 0.9


def test_the_picture_shows_no_more_than_the_table(tables):
    """Counts of steps, and where the guesses begin that count; and it says that it is secret."""
    given = [tables / "trained.parquet", "--untrained", tables / "rest.parquet"]
    given += ["--label", "bought", "--epsilon", "1", "-o", tables / "a.html"]
    result = run(*given)
    page = (tables / "a.html").read_text(encoding="utf-8")
    assert result.exit_code == 1 and "not private" in page and "Do not publish" in page
    for line in result.stdout.splitlines():
        assert line.replace("'", "&#39;") in page
    curves = re.findall(r'<path d="(M[^"]*)"[^>]*stroke-width: 1.8', page)
    steps = [len({point.split()[0] for point in re.split("[ML]", c)[1:]}) for c in curves]
    assert steps[:2] == [17, 17]  # ends of eight steps of wrong guesses, and eight of right ones
    again = run(*given)
    assert again.exit_code == 2 and "use --overwrite" in again.stderr
    assert run(*given[:-1], tables / "a.svg").exit_code == 2
    assert run(*given, "--overwrite").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--label", "bougth"], "did you mean 'bought'"),
        ([], "needs --label"),
        (["--label", "bought", "--confidence", "1"], "are shares"),
        (["--label", "bought", "--epsilon", "-1"], "expected a number in 0"),
        (["--label", "town"], "none of the classes"),
    ],
)
def test_mistakes_are_one_error(tables, arguments, said):
    result = run(tables / "trained.parquet", "--untrained", tables / "rest.parquet", *arguments)
    assert result.exit_code == 2 and said in result.stderr
    assert "yes" not in result.stderr


def test_tables_without_predictions_or_with_few_rows_are_refused(tables):
    table = pq.read_table(tables / "rest.parquet")
    pq.write_table(table.slice(0, 50), tables / "few.parquet")
    pq.write_table(table.drop_columns(["probability_yes", "probability_no"]), tables / "no.parquet")
    for name, said in (("few", "50 rows with a label"), ("no", "has no column 'prediction'")):
        result = run(
            *(tables / "trained.parquet", "--untrained", tables / f"{name}.parquet"),
            *("--label", "bought"),
        )
        assert result.exit_code == 2 and said in result.stderr


GIVEN = {"samples": "100000", "delimiter": ";", "encoding": "latin-1", "decimal": ","}
GIVEN |= {"budget": "60,8GB", "no_processes": None, "multiline_cells": None, "overwrite": None}
"""Values of options; others are 1."""


@pytest.mark.parametrize("form", command._FORMS)
def test_no_form_of_an_audit_ignores_an_option_of_others(tmp_path, form):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/run.json").write_text("{}", encoding="utf-8")
    begun = {
        command._FILE: ["x.onnx"],
        command._FUNCTION: ["--callable", "a:b"],
        command._RUN: [tmp_path / "run"],
        command._TABLE: ["x.csv"],
    }
    others = set().union(*command._FORMS.values()) - set(command._FORMS[form])
    # FILE with --untrained is a TABLE
    for name in others - ({"untrained"} if form == command._FILE else set()):
        parameter = next(one for one in command.audit_command.params if one.name == name)
        option, value = max(parameter.opts, key=len), GIVEN.get(name, "1")
        result = run(*begun[form], option, *([] if value is None else [value]))
        assert result.exit_code == 2 and f"{option} is for" in result.stderr
        assert result.stderr.endswith(f", not for {form}\n") and not result.stdout
