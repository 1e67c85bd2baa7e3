"""Scenes: what made people give up, and what each command says of a person now."""

import json

import pytest

from tests.cli.test_cli import labeldp
from tests.persons.made import spec, table

PRIVATE = "{kind: private, data: orders.parquet}"


@pytest.fixture
def place(here):
    """A folder with orders: the customer 0 has 30, others one to three."""
    customers = [0] * 30 + [1 + i % 40 for i in range(90)]
    table(here / "orders.parquet", customers, [i % 3 for i in range(120)])
    return here


def write(place, text, name="orders.yaml"):
    (place / name).write_text(text)
    return place / name


def json_of(*arguments):
    result = labeldp(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_a_row_without_a_person_is_refused_before_anything_is_spent(place):
    table(place / "orders.parquet", ["a", None, "b"], [0, 1, 2])
    path = write(place, spec(2, 40, PRIVATE, split={"prior": 4, "label": 36}))
    for command in (["plan", path], ["compile", path, "-o", place / "out"]):
        result = labeldp(*command)
        assert result.exit_code == 2 and "a row names no person" in result.stderr
    assert not list((place).glob("out/*.json"))


def test_every_group_counts_to_the_same_bound(place):
    groups = "groups: {column: customer, values: [0, 1, 2]}\n"
    text = spec(2, 40, PRIVATE, split={"prior": 4, "label": 36}) + groups
    path = write(place, text.replace("randomized_response", "rr_on_bins"))
    assert labeldp("compile", path, "-o", place / "out").exit_code == 0
    report = json_of("verify", place / "out" / "orders.onnx", "--max-epsilon-per-person", "40")
    assert report["person"]["epsilon_total"] == 40.0 and report["ok"]


def test_a_ledger_books_what_a_person_spends_and_names_no_person(place):
    customers = [f"customer-{i}" for i in [0] * 30 + list(range(40))]
    table(place / "orders.parquet", customers, [i % 3 for i in range(70)])
    assert labeldp("ledger", "init", "l.ledger").exit_code == 0
    assert (
        labeldp(
            "ledger", "set-budget", "l.ledger", "--data-set", "shop", "--epsilon", "9"
        ).exit_code
        == 0
    )
    prior = "{kind: private, data: orders.parquet, data_set: shop, data_version: one}"
    more = {"split": {"prior": 4, "label": 36}, "ledger": "l.ledger"}
    path = write(place, spec(2, 40, prior, **more))
    assert labeldp("compile", path, "-o", place / "out").exit_code == 0
    shown = json.loads(labeldp("ledger", "show", "l.ledger", "--json").stdout)
    assert "4.0" in json.dumps(shown) and "customer-" not in json.dumps(shown)
    assert b"customer-" not in (place / "l.ledger").read_bytes()
    other = write(place, spec(3, 40, prior, **more), "other.yaml")  # another question
    again = labeldp("compile", other, "-o", place / "out2")
    assert again.exit_code == 0 and "spends ε₁ = 4" in again.stderr
