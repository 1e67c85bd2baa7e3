"""What a chain of entries shows, and what is never taken for an entry, in a file and a database."""

import pytest

from labeldp_compile.ledger.entries import next_entry
from tests.ledger.conftest import BOTH_STORES


def verify(bench, *flags):
    return bench.run("ledger", "verify", bench.ledger, *flags)


@BOTH_STORES
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET body = replace(body, '1/10', '1/99') WHERE number = 2",
        "UPDATE entries SET hash = substr(hash, 2) || substr(hash, 1, 1) WHERE number = 3",
        "DELETE FROM entries WHERE number = 2",
        "DELETE FROM entries",
        "UPDATE secret SET key = 'x'",
    ],
)
def test_an_altered_row_is_found(used, change):
    used.tamper(change)
    result = verify(used)
    assert result.exit_code == 1 and "ledger" in result.stderr
    if "secret" not in change:  # and nothing more is paid from it
        assert used.compile("other", last="9").exit_code == 1


@BOTH_STORES
def test_a_ledger_is_never_replaced(used):
    before = used.entries()
    result = used.run("ledger", "init", used.ledger)
    assert result.exit_code == 2 and "never replaced" in result.stderr
    assert used.entries() == before


@BOTH_STORES
def test_a_cut_tail_is_found_by_a_noted_head_only(used):
    head = used.run("ledger", "head", used.ledger).stdout.strip()
    used.tamper("DELETE FROM entries WHERE number >= 2")
    assert verify(used).exit_code == 0
    result = verify(used, "--head", head)
    assert result.exit_code == 1 and "cut off" in result.stderr


@BOTH_STORES
def test_a_chain_that_is_written_anew_is_found_by_a_noted_head_only(used):
    head = used.run("ledger", "head", used.ledger).stdout.strip()
    entries = used.entries()
    forged = entries[:2]
    cheaper = {**entries[2].facts, "epsilon": "1/1000"}
    forged.append(next_entry(forged, "spend", cheaper))
    forged.append(next_entry(forged, "prior", entries[3].facts))
    used.tamper(
        *(
            f"UPDATE entries SET body = '{e.body}', previous = '{e.previous}', hash = '{e.hash}' "
            f"WHERE number = {e.number}"
            for e in forged
        )
    )
    assert verify(used).exit_code == 0
    assert verify(used, "--head", head).exit_code == 1


@BOTH_STORES
def test_spending_beyond_the_budget_is_found_even_in_a_whole_chain(used):
    entry = next_entry(used.entries(), "spend", {**used.entries()[2].facts, "epsilon": "5"})
    used.force(entry)
    result = verify(used)
    assert result.exit_code == 1 and "spends more than the budget allowed" in result.stderr


@BOTH_STORES
def test_a_budget_may_change_and_the_change_stays_in_sight(used):
    used.set_budget("0.05")
    assert used.compile("other", last="9").exit_code == 1
    assert used.compile().exit_code == 0  # recalled
    flags = ("--data-set", "visits", "--epsilon", "2", "--reason", "agreed with the board")
    assert used.run("ledger", "set-budget", used.ledger, *flags).exit_code == 0
    assert used.compile("other", last="9").exit_code == 0
    shown = used.run("ledger", "show", used.ledger).stdout
    assert "agreed with the board" in shown and "visits may spend ε = 0.05" in shown
    assert verify(used).exit_code == 0


def append(bench, kind, **facts):
    """An entry with a hash that is right, written by hand."""
    bench.force(next_entry(bench.entries(), kind, facts))


@BOTH_STORES
def test_a_kind_that_a_later_version_may_spend_by_is_not_passed_over(used):
    append(used, "group_spend", data_set="visits", epsilon="1/2", time="2026-01-01T00:00:00Z")
    for result in (verify(used), used.compile(), used.compile("other", last="9")):
        assert result.exit_code == 2 and "does not know ('group_spend')" in result.stderr


@BOTH_STORES
@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": "1/0"},
        {"epsilon": "-1"},
        {"epsilon": "1e9"},
        {"data_set": "visits\x1b[2J"},
        {"data_version": ["a"]},
        {"time": "\x1b[31mnow"},
    ],
)
def test_entries_that_no_labeldp_writes(used, change):
    append(used, "spend", **{**used.entries()[2].facts, **change})
    for command in ("verify", "show", "head"):
        result = used.run("ledger", command, used.ledger)
        assert result.exit_code == 1 and "entry 4 has fields that no" in result.stderr
    assert used.compile("other", last="9").exit_code == 1


@BOTH_STORES
@pytest.mark.parametrize(
    "change",
    [
        {"spend": 1},
        {"spend": 9},
        {},  # a second answer to a spend that has one
        {"data_version": "other"},
        {"question_sha256": "0" * 64},
    ],
)
def test_a_prior_that_nobody_paid_is_not_recalled(used, change):
    append(used, "prior", **{**used.entries()[3].facts, **change})
    result = verify(used)
    assert result.exit_code == 1 and "prior for which no earlier entry spent ε" in result.stderr
    assert used.compile().exit_code == 1


@BOTH_STORES
def test_a_prior_that_was_paid_with_less_is_not_recalled(used):
    """An entry that pays nothing for the question, and an answer to it that somebody made up."""
    entries = used.entries()
    append(used, "spend", **{**entries[2].facts, "epsilon": "0"})
    answer = {**entries[3].facts["answer"], "weights": [1, 0, 0, 0]}
    append(used, "prior", **{**entries[3].facts, "spend": 4, "answer": answer})
    result = used.compile()
    assert result.exit_code == 0 and "reusing the noisy prior of entry 3" in result.stderr
