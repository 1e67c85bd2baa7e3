"""Scenes: what made people give up, and what each command says of a person now."""

import json

import pytest

from tests.cli.test_cli import labeldp
from tests.fixtures.compiled import compile_text
from tests.persons.made import SPEC, UNIFORM, spec, table

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


def test_plan_says_what_a_customer_with_30_orders_spends(place):
    """ε = 1 became 29.955 for a customer with 30 orders; plan never said so."""
    users = SPEC.replace("PRIVACY", "epsilon: 1, labels_per_user: 30").replace("PRIOR", UNIFORM)
    before = labeldp("plan", write(place, users)).stdout
    assert "ε per person      30           for 30 labels" in before
    assert json_of("plan", place / "orders.yaml")["person"]["epsilon_total"] == 30.0
    plain = SPEC.replace("PRIVACY", "epsilon: 1").replace("PRIOR", UNIFORM)
    assert "a person spends this for each label" in labeldp("plan", write(place, plain)).stdout
    path = write(place, spec(30, 1, PRIVATE))
    said = labeldp("plan", path).stdout
    assert "ε per label       0.0333334" in said and "ε per person      1  " in said
    assert "41 persons have up to 30 rows" in said
    assert "with one row a person, its label has ε = 1 instead of 0.0333334" in said
    person = json_of("plan", path)["person"]
    assert person["exact"]["epsilon_total"] == "1" and person["labels_per_person"] == 30
    assert person["table"] == {
        "persons": 41,
        "rows": 120,
        "largest": 30,
        "persons_beyond": 0,
        "rows_beyond": 0,
    }
    assert person["epsilon_label_with_one_row"] == 1.0


def test_three_columns_of_a_customer_share_one_epsilon(place):
    """89.955 over three columns: each column now has a third of a person's ε."""
    files = []
    for name in ("a", "b", "c"):
        text = spec(30, "0.5", "{kind: public, weights: [1, 2, 3]}").replace("orders", name)
        files.append(compile_text(text).write(place))
    document = json_of("ledger", "total", *files)
    assert document["exact"]["epsilon_pure"] == "3/2" and document["labels_per_user"] == 90
    assert document["epsilon_total"] == 1.5 and document["smaller_with_delta"]


def test_plan_names_rows_beyond_the_bound_and_the_prior_does_not_count_them(place):
    path = write(place, spec(2, 40, PRIVATE, ", split: {prior: 4, label: 36}"))
    said = labeldp("plan", path).stdout
    assert "n = 82 rows" in said  # two of each of 41 persons
    assert "(38 rows are beyond 2: randomize refuses them)" in said
    assert "spends ε = 4 on" in said  # a person's part, not a label's
    result = labeldp("compile", path, "-o", place / "out")
    assert result.exit_code == 0
    assert "the prior counts the first 2 of each, and leaves out 38 rows" in result.stderr
    certificate = json.loads((place / "out" / "orders.certificate.json").read_text())
    assert certificate["prior"]["rows"] == 82
    assert certificate["person"]["l1_sensitivity"] == 4
    assert certificate["prior"]["scale"] == 1.0  # 2·L/ε₁ = 4/4
    assert (certificate["person"]["epsilon_prior"], certificate["exact"]["epsilon_prior"]) == (
        "4",
        "2",
    )


def test_a_row_without_a_person_is_refused_before_anything_is_spent(place):
    table(place / "orders.parquet", ["a", None, "b"], [0, 1, 2])
    path = write(place, spec(2, 40, PRIVATE, ", split: {prior: 4, label: 36}"))
    for command in (["plan", path], ["compile", path, "-o", place / "out"]):
        result = labeldp(*command)
        assert result.exit_code == 2 and "a row names no person" in result.stderr
    assert not list((place).glob("out/*.json"))


def test_every_group_counts_to_the_same_bound(place):
    groups = "groups: {column: customer, values: [0, 1, 2]}\n"
    text = spec(2, 40, PRIVATE, ", split: {prior: 4, label: 36}") + groups
    path = write(place, text.replace("randomized_response", "rr_on_bins"))
    assert labeldp("compile", path, "-o", place / "out").exit_code == 0
    report = json_of("verify", place / "out" / "orders.onnx", "--max-epsilon-per-person", "40")
    assert report["person"]["epsilon_total"] == 40.0 and report["ok"]


def test_verify_fails_above_the_limit_of_a_person(place):
    file = compile_text(spec(30, 2)).write(place)
    for most, code in (("2", 0), ("1.99", 1)):
        result = labeldp("verify", file, "--max-epsilon-per-person", most)
        assert result.exit_code == code
    said = labeldp("verify", file).stdout
    assert "ε per label   at most 0.066667 (proved)" in said
    assert "at most 2 (proved) for the labels of a person with up to 30 labels in customer" in said
    unsaid = SPEC.replace("PRIVACY", "epsilon: 1").replace("PRIOR", UNIFORM)
    other = compile_text(unsaid.replace("orders", "other")).write(place)
    result = labeldp("verify", other, "--max-epsilon-per-person", "60")
    assert result.exit_code == 1 and "does not say how many labels" in result.stdout
    assert labeldp("verify", file, "--max-epsilon-per-person", "x").exit_code == 2


def test_init_counts_the_rows_of_each_person(place):
    options = "--column", "returned", "--range", "0..2", "--yes", "--prior", "uniform"
    result = labeldp("init", "orders.parquet", *options, "--person-column", "customer")
    assert result.exit_code == 0, result.stderr
    assert "41 persons have up to 30 rows" in result.stderr and "aggregate first" in result.stderr
    assert "ε = 1 for a person with up to 30 labels, and 0.0333334 for each" in result.stderr
    text = (place / "returned.yaml").read_text()
    assert "unit: person" in text and "labels_per_person: 30" in text
    for more, expected in [
        (["--labels-per-person", "3"], "needs --person-column"),
        (["--person-column", "returned"], "is the label; persons must be public"),
        (["--person-column", " RETURNED"], "is the label; persons must be public"),
        (["--person-column", "nobody"], "nobody"),
    ]:
        refused = labeldp("init", "orders.parquet", *options, *more, "-o", "other.yaml")
        assert refused.exit_code == 2 and expected in refused.stderr
        assert not (place / "other.yaml").exists()


def test_choose_and_sweep_say_both(place):
    path = write(place, spec(30, 3))
    chosen = labeldp("sweep", path, "--target", "max-belief=0.02@0.01")
    assert chosen.exit_code == 0 and "a person with 30 labels spends ε = " in chosen.stdout
    document = json_of("sweep", path, "--target", "max-belief=0.02@0.01")
    assert document["person"]["epsilon"] == pytest.approx(30 * document["epsilon"])
    lines = document["spec"]
    assert "unit: person" in lines and f"epsilon: {document['person']['epsilon']:g}" in lines
    options = "--epsilon", "3,60", "--mechanisms", "randomized_response"
    swept = labeldp("sweep", path, *options).stdout
    assert "ε = 0.1 per label, 3 per person (30 labels)" in swept and "ε of a person" in swept
    points = json_of("sweep", path, *options)["points"]
    assert [(p["epsilon"], p["epsilon_person"]) for p in points] == [(0.1, 3.0), (2.0, 60.0)]


def test_the_report_the_registry_and_an_attestation_say_it(place):
    file = compile_text(spec(5, 1)).write(place)
    options = "--registry", "r.yaml", "--published", "2026-01-31"
    assert labeldp("report", file, "-o", "r.html", *options).exit_code == 0
    page = (place / "r.html").read_text()
    assert "privacy of a person" in page and "<code>customer</code>" in page
    entry = (place / "r.yaml").read_text()
    assert "One person with 5 labels (declared) spends at most ε = 1.0" in entry
    assert labeldp("verify", file, "--attest", "a.json").exit_code == 0
    stated = json.loads((place / "a.json").read_text())["predicate"]["labeldp"]["declared"]
    assert stated["person"]["epsilon_total"] == "1"


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
    more = ", split: {prior: 4, label: 36}, ledger: l.ledger"
    path = write(place, spec(2, 40, prior, more))
    assert labeldp("compile", path, "-o", place / "out").exit_code == 0
    shown = json.loads(labeldp("ledger", "show", "l.ledger", "--json").stdout)
    assert "4.0" in json.dumps(shown) and "customer-" not in json.dumps(shown)
    assert b"customer-" not in (place / "l.ledger").read_bytes()
    other = write(place, spec(3, 40, prior, more), "other.yaml")  # another question
    again = labeldp("compile", other, "-o", place / "out2")
    assert again.exit_code == 0 and "spends ε₁ = 4" in again.stderr
