"""``plan --out`` and ``compile FILE.plan``: exactly what was approved, or nothing."""

import json

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
import yaml

from labeldp_compile.build import plan as saved_plan
from tests.policy.company import SPEC, changed, done, labeldp, table, write

COMPILE = ("compile", "visits.plan", "-o", "build")
PLAN = ("plan", "visits.yaml", "--out", "visits.plan")


@pytest.fixture
def place(here):
    """A spec with a private prior, and a ledger that tells whether anything was spent."""
    table(here)
    done("ledger", "init", "budget.ledger", where=here)
    budget = ("ledger", "set-budget", "budget.ledger", "--data-set", "clinic", "--epsilon", 1)
    done(*budget, where=here)
    spec = changed(
        SPEC,
        privacy__ledger="budget.ledger",
        privacy__labels_per_user=None,
        prior__data="visits.parquet",
    )
    write(here / "visits.yaml", spec)
    done(*PLAN, where=here)
    return here


def spent(place):
    shown = json.loads(done("ledger", "show", "budget.ledger", "--json", where=place).stdout)
    return shown["data_sets"]["clinic"]["spent"]


def spec_of(place):
    return yaml.safe_load((place / "visits.yaml").read_text())


def test_what_was_approved_is_done_and_the_labels_may_have_changed(place):
    pq.write_table(
        pq.read_table(place / "visits.parquet").set_column(0, "visits", pa.array([1] * 3000)),
        place / "visits.parquet",
    )
    done(*COMPILE, where=place)
    assert spent(place) == 0.1 and (place / "build" / "visits.onnx").exists()
    done("verify", "build/visits.onnx", "--spec", "visits.yaml", where=place)


CHANGES = {
    "a row": (lambda p: table(p, 3001), "the number of rows"),
    "a column": (lambda p: table(p, more=("new",)), "the columns, types or rows of a table"),
    "a type": (
        lambda p: pq.write_table(
            pq.read_table(p / "visits.parquet").cast(
                pa.schema([("visits", pa.int64()), ("site", pa.int8())])
            ),
            p / "visits.parquet",
        ),
        "the columns, types or rows of a table",
    ),
    "the spec": (
        lambda p: write(p / "visits.yaml", changed(spec_of(p), label__domain__max=4)),
        "the spec",
    ),
    "a comment in the spec": (
        lambda p: (p / "visits.yaml").write_text("# x\n" + (p / "visits.yaml").read_text()),
        "the spec",
    ),
    "the plan": (
        lambda p: (p / "visits.plan").write_text(
            (p / "visits.plan").read_text().replace('"1/10"', '"2/10"')
        ),
        "ε of the prior, what is spent now",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_is_refused_before_anything_is_spent(change, place):
    plant, words = CHANGES[change]
    plant(place)
    result = labeldp(*COMPILE, where=place)
    assert result.exit_code == 1 and words in result.stderr.partition("plan was saved: ")[2]
    assert spent(place) == 0 and not (place / "build").exists()


@pytest.mark.parametrize("change", ["a row", "a comment in the spec"])
def test_what_changes_between_the_look_and_the_spending_is_refused(change, place, monkeypatch):
    """Spec and data are looked at again just before ε is spent."""
    look = saved_plan.SavedPlan.require_same

    def and_then(self):
        look(self)
        CHANGES[change][0](place)

    monkeypatch.setattr(saved_plan.SavedPlan, "require_same", and_then)
    result = labeldp(*COMPILE, where=place)
    assert result.exit_code == 1 and "Nothing was spent" in result.stderr
    assert spent(place) == 0


def test_a_plan_that_recalls_does_not_allow_to_spend(place):
    done(*COMPILE, where=place)
    done(*PLAN, "--overwrite", where=place)
    assert json.loads((place / "visits.plan").read_text())["approved"]["spends"] == "0"
    done(*COMPILE, "--overwrite", where=place)
    assert spent(place) == 0.1
    (place / "budget.ledger").unlink()
    done("ledger", "init", "budget.ledger", where=place)
    budget = ("ledger", "set-budget", "budget.ledger", "--data-set", "clinic", "--epsilon", 1)
    done(*budget, where=place)
    result = labeldp(*COMPILE, "--overwrite", where=place)
    assert result.exit_code == 1 and "what is spent now" in result.stderr and spent(place) == 0


def test_of_csv_the_names_of_columns_and_the_stated_rows_are_approved(place):
    source = pq.read_table(place / "visits.parquet")
    pa_csv.write_csv(source, place / "visits.csv")
    spec = changed(spec_of(place), prior__data="visits.csv", prior__rows=3000)
    write(place / "visits.yaml", spec)
    done(*PLAN, "--overwrite", where=place)
    pa_csv.write_csv(source.rename_columns(["visits", "clinic"]), place / "visits.csv")
    result = labeldp(*COMPILE, where=place)
    assert result.exit_code == 1 and spent(place) == 0
    pa_csv.write_csv(source, place / "visits.csv")
    done(*COMPILE, where=place)


def test_a_public_file_is_approved_with_its_contents(here):
    table(here)
    spec = changed(SPEC, privacy={"epsilon": 1}, prior={"kind": "public", "data": "visits.parquet"})
    write(here / "visits.yaml", spec)
    done(*PLAN, where=here)
    pq.write_table(
        pq.read_table(here / "visits.parquet").set_column(0, "visits", pa.array([1] * 3000)),
        here / "visits.parquet",
    )
    result = labeldp(*COMPILE, where=here)
    assert result.exit_code == 1 and "a public file" in result.stderr
