"""ε₁ is paid before a label is read, never over budget, and once for the same question."""

import json
import subprocess
import sys
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq

from labeldp_compile.ledger.book import data_sets
from labeldp_compile.prior import obtain
from tests.ledger.conftest import BOTH_STORES

pytestmark = BOTH_STORES


def spent(bench):
    return data_sets(bench.entries())["visits"].spent


def certificate(bench, name="one"):
    return json.loads((bench.folder / "build" / f"{name}.certificate.json").read_text())


def test_a_compile_pays_once_and_then_recalls(bench):
    bench.open_budget("0.15")
    first = bench.compile()
    assert first.exit_code == 0 and "entry 2 spends ε₁ = 0.1" in first.stderr
    prior = certificate(bench)["prior"]
    again = bench.compile()
    assert again.exit_code == 0 and "reusing the noisy prior of entry 3" in again.stderr
    assert certificate(bench)["prior"] == prior and spent(bench) == Fraction(1, 10)
    # The same histogram serves another mechanism, too; another question is not paid for by it.
    assert bench.compile("two", mechanism="optimal_unbiased").exit_code == 0
    assert certificate(bench, "two")["prior"] == prior and spent(bench) == Fraction(1, 10)
    other = bench.compile("three", last="4")
    assert other.exit_code == 1 and spent(bench) == Fraction(1, 10)
    assert "over budget: the data set 'visits' has spent 0.1 of its budget ε = 0.15" in other.stderr
    assert not (bench.folder / "build" / "three.onnx").exists()


def test_sums_are_exact(bench):
    bench.open_budget("0.3")  # in floats 0.1 + 0.1 + 0.1 is more
    for last in ("3", "4", "5"):
        assert bench.compile(f"to{last}", last=last).exit_code == 0
    assert spent(bench) == Fraction(3, 10)
    assert bench.compile("more", last="6", prior="1e-9", label="0.999999999").exit_code == 1


def test_plan_says_what_the_ledger_would_do(bench):
    bench.open_budget("0.15")
    spec, other = bench.spec(), bench.spec("other", last="9")
    assert "visits has spent 0 of 0.15" in bench.run("plan", spec).stdout
    assert bench.compile().exit_code == 0
    assert "reuses the noisy prior" in bench.run("plan", spec).stdout
    refused = bench.run("plan", other)
    assert refused.exit_code == 1 and "over budget" in refused.stderr
    assert len(bench.entries()) == 4


def test_no_label_is_read_before_the_ledger_is_paid(bench, once):
    bench.open_budget("0.1")
    seen = []
    once(obtain, "count_labels", lambda: seen.extend(entry.kind for entry in bench.entries()))
    assert bench.compile().exit_code == 0 and bench.compile("other", last="9").exit_code == 1
    assert seen == ["ledger", "budget", "spend"]


def test_a_table_that_changes_after_the_spending_is_said_to_have_spent(bench, once):
    bench.open_budget("0.2")
    once(obtain, "count_labels", lambda: bench.write_labels("labels.parquet", [0, 1, 2]))
    result = bench.compile()
    assert result.exit_code == 2 and "changed while it was read" in result.stderr
    assert spent(bench) == Fraction(1, 10) and "stays spent in the ledger" in result.stderr
    assert "nothing was spent" not in result.stderr


def test_other_data_need_another_version(bench):
    bench.open_budget("1")
    assert bench.compile().exit_code == 0
    bench.write_labels("labels.parquet", [3] * 140)
    result = bench.compile("wider", last="4")
    assert result.exit_code == 2 and "the file that was called '2026-01'" in result.stderr
    assert not (bench.folder / "build" / "wider.onnx").exists()
    assert bench.compile("wider", last="4", version="2026-02").exit_code == 0
    versions = data_sets(bench.entries())["visits"].versions
    assert versions == {"2026-01": Fraction(1, 5), "2026-02": Fraction(1, 10)}


def test_the_same_labels_have_one_budget(bench):
    bench.open_budget("0.1")
    bench.set_budget("1", "again")
    pq.write_table(pa.table({"y": [0, 1] * 70, "z": [1, 2] * 70}), bench.folder / "labels.parquet")
    assert bench.compile().exit_code == 0
    path = bench.spec("again", version="another")
    path.write_text(path.read_text().replace("data_set: visits", "data_set: again"))
    out = ("-o", bench.folder / "build")
    result = bench.run("compile", path, *out)
    assert (
        result.exit_code == 2 and "column 'y' is the data set 'visits' in entry 4" in result.stderr
    )
    assert not (bench.folder / "build" / "again.onnx").exists()
    # What was attempted is paid, from the second budget, and is no answer to recall.
    assert data_sets(bench.entries())["again"].spent == Fraction(1, 10)
    assert spent(bench) == Fraction(1, 10) and len(bench.entries("prior")) == 1
    assert bench.run("compile", path, *out).exit_code == 2
    # Another column of the file holds other labels.
    path.write_text(path.read_text().replace("column: y", "column: z"))
    assert bench.run("compile", path, *out).exit_code == 0
    assert [entry.facts["column"] for entry in bench.entries("prior")] == ["y", "z"]


def test_another_number_of_rows_is_noticed_even_where_nothing_is_read(bench):
    bench.open_budget("1")
    assert bench.compile().exit_code == 0
    bench.write_labels("labels.parquet", [0, 1, 2])
    result = bench.compile()
    assert result.exit_code == 2 and "another data_version" in result.stderr


def test_a_sweep_leaves_its_prior_for_compile(bench):
    bench.open_budget("0.1")
    spec = bench.spec()
    sweep = ("sweep", spec, "--epsilon", "1", "--mechanisms", "rr_on_bins", "--quiet")
    refused = bench.run(*sweep)
    assert (
        refused.exit_code == 2 and "--spend-prior" in refused.stderr and not bench.entries("spend")
    )
    assert "compile reuses it" in refused.stderr and "on top" not in refused.stderr
    paid = bench.run(*sweep, "--spend-prior")
    assert paid.exit_code == 0 and bench.entries("spend")[0].facts["command"] == "sweep"
    result = bench.compile()
    assert result.exit_code == 0 and "reusing" in result.stderr
    free = bench.run(*sweep)
    assert free.exit_code == 0 and "reusing" in free.stderr and spent(bench) == Fraction(1, 10)


def test_a_test_seed_is_refused(bench):
    bench.open_budget("1")
    flags = ("-o", bench.folder / "build", "--insecure-test-seed", "1")
    result = bench.run("compile", bench.spec(), *flags)
    assert result.exit_code == 2 and "test seed" in result.stderr and not bench.entries("spend")


AT_ONCE = """
import os, sys
from fractions import Fraction
from labeldp_compile.ledger.book import OverBudgetError
from labeldp_compile.ledger.prior_account import PriorAccount
from labeldp_compile.ledger.entries import Question
from labeldp_compile.ledger.store import open_store

def pay(process):
    names = {"data_set": "visits", "data_version": "first", "spec": "x", "command": "compile"}
    facts = {"spec_digest": "0" * 64, "say": lambda line: None}
    account = PriorAccount(open_store(sys.argv[1]), **names, **facts)
    for attempt in range(10):
        question = Question("y", Fraction(1, 40), None, {"process": process, "attempt": attempt})
        try:
            account.spend(question)
        except OverBudgetError:
            return attempt
    return 10

gate, opened = os.pipe()
for process in range(20):
    if os.fork() == 0:
        os.close(opened)
        os.read(gate, 1)  # ends when all are there
        code = 99
        try:
            code = pay(process)
        finally:
            os._exit(code)  # whatever happens: a copy must not tidy up after threads it has not
os.close(opened)
print(*(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(20)))
"""


def test_twenty_processes_at_once_never_go_over_budget(bench):
    bench.open_budget("0.505")
    command = [sys.executable, "-c", AT_ONCE, str(bench.ledger)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    paid = [int(code) for code in done.stdout.split()]
    assert len(paid) == 20 and sum(paid) == 20, done.stderr
    assert spent(bench) == Fraction(1, 2) and len(bench.entries("spend")) == 20
    assert bench.run("ledger", "verify", bench.ledger).exit_code == 0
