"""Digests of data need the client's key: the ledger alone confirms no guess of labels."""

import hashlib
import hmac

import pytest

from labeldp_compile.ledger.entries import next_entry
from labeldp_compile.ledger.prior_account import PriorAccount
from labeldp_compile.prior import obtain
from tests.ledger.conftest import BOTH_STORES


def keyed(key, data):
    return hmac.new(key, data, hashlib.sha256).hexdigest()


def secret(bench):
    connection = bench._connect()
    ((key,),) = connection.execute("SELECT key FROM secret").fetchall()
    connection.close()
    return bytes(key)


def labels(bench):
    return (bench.folder / "labels.parquet").read_bytes()


@pytest.fixture
def no_label_is_read(monkeypatch):
    """From the call of this on."""

    def fails(*arguments):
        raise AssertionError("labels were read")

    def begin():
        monkeypatch.setattr(obtain, "count_labels", fails)
        monkeypatch.setattr(PriorAccount, "require_same_data", fails)

    return begin


@BOTH_STORES
def test_all_that_the_ledger_holds_does_not_confirm_the_labels(used):
    prior = used.entries("prior")[0].facts
    guesses = (secret(used), b"", *(entry.hash.encode() for entry in used.entries()))
    assert prior["data_hmac"] not in {keyed(key, labels(used)) for key in guesses}
    # With the client's key it is a digest of the data, or it would notice nothing.
    client = bytes.fromhex((used.config.parent / "ledger.key").read_text())
    own = hmac.new(client, b"labeldp ledger: digests of data, with " + secret(used), "sha256")
    assert prior["data_hmac"] == keyed(own.digest(), labels(used))
    assert used.entries()[0].facts["client_key_sha256"] == hashlib.sha256(client).hexdigest()


@BOTH_STORES
def test_another_key_and_no_key_are_refused_before_anything_is_spent(used, no_label_is_read):
    no_label_is_read()
    key = used.config.parent / "ledger.key"
    for text, message in (
        ("0" * 64, "another client key"),
        ("0" * 63, "expected a key of 64 hexadecimal digits"),
        (None, "does not exist: copy the key file of the other compilers there"),
    ):
        key.unlink()
        if text is not None:
            key.write_text(text)
            key.chmod(0o600)
        for result in (
            used.compile("other", last="9"),
            used.run("plan", used.spec("other", last="9")),
        ):
            assert result.exit_code == 2 and message in result.stderr, result.output
            assert len(result.stderr.splitlines()) == 1 and "0" * 63 not in result.output
        if text is None:
            key.touch()
    assert len(used.entries()) == 4
    # Who only looks needs none.
    for command in ("show", "head", "verify"):
        assert used.run("ledger", command, used.ledger).exit_code == 0


def test_a_key_is_made_once_and_said_once(bench):
    first = bench.run("ledger", "init", bench.ledger)
    key = bench.config.parent / "ledger.key"
    before = key.read_bytes()
    assert "a new key" in first.stderr and key.stat().st_mode & 0o777 == 0o600
    assert before.decode().strip() not in first.output
    second = bench.run("ledger", "init", bench.folder / "second.ledger")
    assert second.exit_code == 0 and "a new key" not in second.stderr
    assert key.read_bytes() == before


@BOTH_STORES
@pytest.mark.parametrize("is_right", [True, False])
def test_a_server_learns_nothing_from_a_guess_that_it_plants(used, is_right):
    """It knows all that is in the ledger; a right guess would have the compile refused."""
    data = labels(used) if is_right else b"other labels"
    entries = used.entries()
    facts = {"data_set": "bait", "spend": 5, "data_hmac": keyed(secret(used), data)}
    for entry in entries[1:]:
        bait = {key: value for key, value in facts.items() if key in entry.facts}
        used.force(next_entry(used.entries(), entry.kind, {**entry.facts, **bait}))
    assert used.compile("other", last="9").exit_code == 0


@BOTH_STORES
def test_a_ledger_of_another_format_is_refused(used):
    first = used.entries()[0]
    used.tamper("DELETE FROM entries")
    used.force(next_entry([], "ledger", {**first.facts, "format_version": "2.0"}))
    for command in ("show", "verify"):
        result = used.run("ledger", command, used.ledger)
        assert result.exit_code == 2 and "this labeldp reads '1.0'" in result.stderr
