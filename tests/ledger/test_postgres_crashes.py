"""A server, a client, a connection that goes away: nothing is lost, and nothing is spent twice."""

import signal
import subprocess
import sys
from fractions import Fraction

import pytest

from labeldp_compile import compile_spec
from labeldp_compile.errors import InputError
from labeldp_compile.ledger import postgres as postgres_store
from labeldp_compile.ledger.book import data_sets
from labeldp_compile.prior import obtain
from tests.ledger.proxy import Proxy


@pytest.fixture
def store():
    return "postgres"


@pytest.fixture
def paying(bench):
    bench.open_budget("1")
    return bench


def kinds(bench):
    return [entry.kind for entry in bench.entries()][2:]


def spent(bench):
    return data_sets(bench.entries())["visits"].spent


def whole(bench):
    return bench.run("ledger", "verify", bench.ledger).exit_code == 0


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_server_that_comes_back_while_labels_are_read(paying, once, how):
    once(obtain, "count_labels", getattr(paying.server, how))
    once(postgres_store, "_pause", paying.server.start)  # the client has missed it
    result = paying.compile()
    assert result.exit_code == 0 and result.stderr.count("waiting for the server") == 1
    assert kinds(paying) == ["spend", "prior"] and whole(paying)
    assert "reusing" in paying.compile().stderr and spent(paying) == Fraction(1, 10)


def test_a_server_that_does_not_come_back_while_labels_are_read(paying, once, limit):
    limit(postgres_store, "SECONDS_TO_WAIT", 0.1)
    once(obtain, "count_labels", paying.server.kill)
    result = paying.compile()
    assert result.exit_code == 2 and "cannot be reached" in result.stderr
    assert "Traceback" not in result.stderr and not (paying.folder / "build").exists()
    paying.server.start()
    assert kinds(paying) == ["spend"] and whole(paying)  # what was paid is not forgotten
    again = paying.compile()
    assert again.exit_code == 0
    assert "entry 2 spent ε on the same question without a noisy prior" in again.stderr


def test_a_server_that_goes_when_an_entry_is_not_committed(paying, monkeypatch):
    add = postgres_store.PostgresRows.add

    def added_and_gone(rows, entry):
        add(rows, entry)
        paying.server.kill()

    with monkeypatch.context() as patch:
        patch.setattr(postgres_store.PostgresRows, "add", added_and_gone)
        patch.setattr(postgres_store, "_SECONDS_TO_SETTLE", 0.0)
        result = paying.compile()
    assert result.exit_code == 2 and "whether entry 2 was written cannot be known" in result.stderr
    assert result.stderr.count("\n") == 1 and not (paying.folder / "build").exists()
    paying.server.start()
    assert kinds(paying) == [] and whole(paying)
    assert paying.compile().exit_code == 0 and spent(paying) == Fraction(1, 10)


@pytest.mark.parametrize("delivered", [True, False], ids=["unanswered", "undelivered"])
@pytest.mark.parametrize("entry", [1, 2], ids=["spend", "prior"])
def test_a_connection_that_is_lost_in_a_commit(paying, entry, delivered):
    proxy = Proxy(paying.server.folder, entry, delivered=delivered)
    url = paying.server.url(paying.schema, password="", at=proxy.folder)
    paying.named = paying.name_server(url)
    try:
        result = paying.compile()
        assert proxy.has_cut
        if entry == 1 and not delivered:  # nothing was paid, so nothing is waited for
            assert result.exit_code == 2 and "nothing was written" in result.stderr
            assert result.stderr.count("\n") == 1 and kinds(paying) == []
            assert not (paying.folder / "build").exists()
            result = paying.compile()
        assert result.exit_code == 0, result.stderr
    finally:
        proxy.close()
    assert kinds(paying) == ["spend", "prior"] and whole(paying)


CRASH = """
import os, signal, sys
from pathlib import Path
from labeldp_compile import compile_spec
from labeldp_compile.build import pipeline
from labeldp_compile.errors import InputError
from labeldp_compile.ledger import postgres as postgres_store
from labeldp_compile.prior import obtain

def dies(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

def dies_after(rows, entry, add=postgres_store.PostgresRows.add):
    add(rows, entry)
    dies()

place, name, patch = {
    "in-the-transaction": (postgres_store.PostgresRows, "add", dies_after),
    "before-the-prior": (obtain, "count_labels", dies),
    "after-the-prior": (pipeline, "assemble", dies),
}[Path(sys.argv[1]).stem]
setattr(place, name, patch)
compile_spec(Path(sys.argv[1]))
"""


def test_clients_that_are_killed(paying):
    names = ("in-the-transaction", "before-the-prior", "after-the-prior")
    domains = {name: {"last": str(last)} for last, name in enumerate(names, 3)}
    processes = [
        subprocess.Popen([sys.executable, "-c", CRASH, paying.spec(name, **domains[name])])
        for name in names
    ]
    assert [process.wait() for process in processes] == [-signal.SIGKILL] * 3
    assert sorted(kinds(paying)) == ["prior", "spend", "spend"] and whole(paying)
    spends = {entry.facts["spec"]: entry.number for entry in paying.entries("spend")}
    results = [paying.compile(name, **domains[name]) for name in names]
    assert [result.exit_code for result in results] == [0, 0, 0]
    assert "entry 5 spends ε₁ = 0.1\n" in results[0].stderr
    assert f"entry {spends['before-the-prior']} spent ε on the same question" in results[1].stderr
    assert f"was spent by entry {spends['after-the-prior']}" in results[2].stderr
    assert spent(paying) == Fraction(4, 10)


def attempt(path):
    try:
        compile_spec(path)
    except InputError as error:
        return error.exit_code
    return 0
