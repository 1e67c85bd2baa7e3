"""Digests of data need the client's key: the ledger alone confirms no guess of labels."""

import hashlib
import hmac
import json

import pytest

from labeldp_compile.ledger.account import data_sets
from labeldp_compile.ledger.book import read_entries
from labeldp_compile.ledger.entries import next_entry
from labeldp_compile.ledger.prior_account import PriorAccount
from labeldp_compile.prior import obtain
from tests.ledger.conftest import BOTH_STORES
from tests.ledger.earlier_tables import bring_earlier, earlier_key


def keyed(key, data):
    return hmac.new(key, data, hashlib.sha256).hexdigest()


def secret(bench):
    connection = bench._connect()
    ((key,),) = connection.execute("SELECT key FROM secret").fetchall()
    connection.close()
    return bytes(key)


def labels(bench):
    return (bench.folder / "labels.parquet").read_bytes()


def earlier(bench, name="one", **changes):
    """A compile of the labels that the earlier ledger knows, or of others."""
    return bench.compile(name, **{"data": "labels.csv, rows: 140", **changes})


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


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_key_that_others_may_read_is_refused(used, mode):
    (used.config.parent / "ledger.key").chmod(mode)
    result = used.compile("other", last="9")
    assert result.exit_code == 2 and "others may read this key" in result.stderr


def test_a_key_is_made_once_and_said_once(bench):
    first = bench.run("ledger", "init", bench.ledger)
    key = bench.config.parent / "ledger.key"
    before = key.read_bytes()
    assert "a new key" in first.stderr and key.stat().st_mode & 0o777 == 0o600
    assert before.decode().strip() not in first.output
    second = bench.run("ledger", "init", bench.folder / "second.ledger")
    assert second.exit_code == 0 and "a new key" not in second.stderr
    assert key.read_bytes() == before


def test_a_file_that_somebody_planted_has_another_key(used, no_label_is_read):
    """Its author knows all that is in it, and would be sent it back."""
    no_label_is_read()
    (used.config.parent / "ledger.key").write_text("1" * 64)
    before = used.ledger.read_bytes()
    result = used.compile("other", last="9")
    assert result.exit_code == 2 and "another client key" in result.stderr
    assert used.ledger.read_bytes() == before


@BOTH_STORES
def test_an_earlier_ledger_is_read_and_recalled(bench, no_label_is_read):
    bring_earlier(bench)
    no_label_is_read()
    for command in ("show", "head", "verify"):
        assert bench.run("ledger", command, bench.ledger).exit_code == 0
    result = earlier(bench)
    assert result.exit_code == 0 and "reusing the noisy prior of entry 3" in result.stderr
    assert "recalls" in bench.run("plan", bench.spec(data="labels.csv, rows: 140")).stdout


@BOTH_STORES
def test_an_earlier_ledger_takes_the_client_key_and_knows_its_data(bench):
    bring_earlier(bench)
    upgraded = bench.run("ledger", "upgrade", bench.ledger)
    assert upgraded.exit_code == 0 and "from entry 4 on it uses your client key" in upgraded.stderr
    assert [e.kind for e in bench.entries()] == ["ledger", "budget", "spend", "prior", "key"]
    # Another question on the same data: compared under the old key, kept under the new one.
    result = earlier(bench, "other", last="9")
    assert result.exit_code == 0 and "entry 5 spends" in result.stderr
    old, new = (prior.facts["data_hmac"] for prior in bench.entries("prior"))
    data = (bench.folder / "labels.csv").read_bytes()
    assert old == keyed(earlier_key(), data) and new != old
    # Other data of this version, and the same labels as another data set, are refused by the old
    # entry, and by the new one.
    bench.set_budget("1", "again")
    path = bench.spec("again", last="8", data="labels.csv, rows: 140", version="new")
    path.write_text(path.read_text().replace("data_set: visits", "data_set: again"))
    again = bench.run("compile", path, "-o", bench.folder / "build")
    assert again.exit_code == 2 and "is the data set 'visits' in entry 3" in again.stderr
    (bench.folder / "labels.csv").write_bytes(data.replace(b"2", b"3", 1))
    result = earlier(bench, "third", last="7")
    assert (
        result.exit_code == 2 and "differs from the file that was called '2026-01'" in result.stderr
    )
    assert bench.run("ledger", "verify", bench.ledger).exit_code == 0


@BOTH_STORES
def test_an_upgrade_may_be_repeated(bench):
    bring_earlier(bench)
    assert bench.run("ledger", "upgrade", bench.ledger).exit_code == 0
    before = bench.entries()
    again = bench.run("ledger", "upgrade", bench.ledger)
    assert again.exit_code == 0 and "up to date\n" in again.stderr and bench.entries() == before
    assert "ok     file" in bench.run("ledger", "verify", bench.ledger).stdout


def test_an_earlier_file_goes_on_by_itself(bench):
    bring_earlier(bench)
    result = earlier(bench, "other", last="9")
    assert result.exit_code == 0
    assert "entry 4 upgrades the ledger of an earlier version" in result.stderr
    assert "if somebody gave you this ledger, create a new one" in " ".join(result.stderr.split())
    assert data_sets(bench.entries())["visits"].spent.denominator == 5
    assert "adopts" not in earlier(bench, "third", last="8").stderr


@pytest.mark.parametrize("store", ["postgres"])
class TestAServerThatKnowsItsKey:
    """An earlier ledger is one whose keys the server made. It shows entries of its own choice."""

    @pytest.fixture
    def bench(self, bench):
        bring_earlier(bench)
        return bench

    def test_no_label_is_read_for_an_earlier_ledger(self, bench, no_label_is_read):
        no_label_is_read()
        result = earlier(bench, "other", last="9")
        assert result.exit_code == 2 and "labeldp ledger upgrade postgresql://" in result.stderr
        assert len(bench.entries()) == 4

    @pytest.mark.parametrize("forge", ["key", "ledger"])
    def test_it_cannot_say_that_the_client_adopted_it(self, bench, no_label_is_read, forge):
        # It may know the hash of the key, from a ledger that it keeps.
        assert bench.run("ledger", "init", bench.folder / "mine.ledger").exit_code == 0
        known = read_entries(bench.folder / "mine.ledger")[0].facts["client_key_sha256"]
        entries = bench.entries()
        if forge == "key":
            facts = {"client_key_sha256": known, "mac": "0" * 64, "time": "2026-01-01T00:00:00Z"}
            bench.force(next_entry(entries, "key", facts))
            no_label_is_read()
            result = earlier(bench, "other", last="9")
            assert result.exit_code == 2 and "without that key wrote it" in result.stderr
            return
        # A beginning like a new ledger's: then no entry is compared under the server's key, so
        # that a digest of a right guess and one of a wrong guess are the same to the client.
        data = (bench.folder / "labels.csv").read_bytes()
        outcomes = []
        for guess in (data, data.replace(b"2", b"3", 1)):
            forged = [next_entry([], "ledger", {**entries[0].facts, "client_key_sha256": known})]
            others = {"data_set": "bait", "data_hmac": keyed(earlier_key(), guess)}
            for entry in entries[1:]:
                bait = {key: value for key, value in others.items() if key in entry.facts}
                forged.append(next_entry(forged, entry.kind, {**entry.facts, **bait}))
            budget = {**entries[1].facts, "data_set": "visits"}
            forged.append(next_entry(forged, "budget", budget))
            connection = bench._connect()
            bench._drop_triggers(connection)
            connection.execute("DELETE FROM entries")
            connection.commit()
            connection.close()
            for entry in forged:
                bench.insert(entry)
            result = earlier(bench, "other", last="9", version="new")
            outcomes.append((result.exit_code, [e.kind for e in bench.entries()]))
        assert outcomes[0] == outcomes[1] and outcomes[0][0] == 0

    def test_after_the_adoption_it_plants_no_guess(self, bench):
        assert bench.run("ledger", "upgrade", bench.ledger).exit_code == 0
        data = (bench.folder / "labels.csv").read_bytes()
        entries = bench.entries()
        budget = {**entries[1].facts, "data_set": "bait"}
        bench.force(next_entry(entries, "budget", budget))
        spend = {**entries[2].facts, "data_set": "bait"}
        bench.force(next_entry(bench.entries(), "spend", spend))
        guess = {"data_set": "bait", "spend": 6, "data_hmac": keyed(earlier_key(), data)}
        bench.force(next_entry(bench.entries(), "prior", {**entries[3].facts, **guess}))
        # A right guess would have the compile refused, which the server sees.
        assert earlier(bench, "other", last="9").exit_code == 0


@BOTH_STORES
def test_a_ledger_takes_one_client_key_for_ever(bench):
    bring_earlier(bench)
    assert bench.run("ledger", "upgrade", bench.ledger).exit_code == 0
    facts = {"client_key_sha256": "0" * 64, "mac": "0" * 64, "time": "2026-01-01T00:00:00Z"}
    bench.force(next_entry(bench.entries(), "key", facts))
    result = bench.run("ledger", "verify", bench.ledger)
    assert result.exit_code == 1 and "entry 5 has fields that no labeldp writes" in result.stderr


@BOTH_STORES
def test_the_digest_of_a_question_is_that_of_earlier_versions(bench):
    bring_earlier(bench)
    spec = bench.spec(data="labels.csv, rows: 140")
    before = bench.entries()[2].facts["question_sha256"]
    assert "recalls" in bench.run("plan", spec).stdout
    from fractions import Fraction

    from labeldp_compile.prior.group_cells import ONE_TABLE
    from labeldp_compile.prior.priors import Known
    from labeldp_compile.prior.split import PriorPlan
    from labeldp_compile.spec import load_spec

    plan = PriorPlan(Fraction(1, 10), Fraction(1))
    assert Known(ONE_TABLE).question(load_spec(spec)[0], plan).digest() == before


@BOTH_STORES
def test_show_says_what_is_counted_and_what_is_not(used):
    shown = used.run("ledger", "show", used.ledger).stdout
    assert " spent " in shown and "counted      ε₁ of the private priors" in shown
    assert "not counted  ε per label" in shown and "training runs" in shown
    facts = json.loads(used.run("ledger", "show", used.ledger, "--json").stdout)
    assert "priors" in facts["counted"][0] and len(facts["not_counted"]) == 3
    assert "ε per label" in facts["not_counted"][0] and "training" in facts["not_counted"][1]
