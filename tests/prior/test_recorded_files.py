"""Questions about private priors, and answers in ledgers, stay the same."""

import hashlib
import json
import os

import pytest

from labeldp_compile.ledger.book import create_ledger, read_entries, set_budget
from labeldp_compile.ledger.prior_account import account_of
from labeldp_compile.prior import discrete_laplace
from labeldp_compile.prior.obtain import estimate_prior
from labeldp_compile.spec import parse_spec
from tests.fixtures.specs import spec

ONE = "{column: y, domain: {kind: integer, min: 0, max: 9}}"
TWO = (
    "{columns: [{column: y, domain: {kind: integer, min: 0, max: 9}}, {column: work, "
    "domain: {kind: categorical, values: [no, self]}, out_of_domain: {default: no}}]}"
)
GIVEN = "{prior: 1, label: 1}"
BOTH = "{columns: [{column: age, bands: [18, 65]}, {column: work, values: [no, self]}]}"
CASES = {
    "one auto": {"split": "auto"},
    "two columns": {"label": TWO, "loss": "zero_one"},
    "both": {"groups": BOTH},
}
# The question of each case, and the SHA-256 of a ledger's answer.
RECORDED = {
    "one auto": (
        "ed567427556346ee8dd2580e399c8db1b7b555cd22d7c3f7f52b362675b4e90d",
        "d5b20a2c7eaf9683cf559854f0e3d53d17846bc7d5edfd7126afdd47795ea94d",
    ),
    "two columns": (
        "6824135261a4787606e04bddcfdf18a26e8de066035e808af615245b4ba34285",
        "fc75ee4134209b26af80d981d51197310a4028e5c69242fde773631c59a556e4",
    ),
    "both": (
        "2967d779ef64e000b553210527c19a5fff03a5e40dc32d9fa4d2ec8baef2b4b5",
        "f60d580d2d6efa3d02b6a19361a2516e74057f21b5c2b1212277edfff2edf76e",
    ),
}


def noise(count, scale):
    return [int(((7919 * i + 13) % 23 - 11) * scale / 8) for i in range(count)]


def rows():
    for i in range(600):
        work = ("no", "self", "else")[i % 7 % 3]
        y = (i * i % 11 + i % 3) % 10 if work == "self" else i % 5 % 3
        yield f"{i * 37 % 90},{work},{y}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(discrete_laplace, "discrete_laplace", noise)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "rows.csv").write_bytes("\n".join(["age,work,y", *rows(), ""]).encode())
    (tmp_path / "teams.csv").write_bytes(b"job,team\nself,b\nno,a\nelse,b\n")
    os.utime(tmp_path / "rows.csv", (1.6e9, 1.6e9))
    return tmp_path


def spec_of(case, ledger=None, names=""):
    parts = {"label": ONE, "loss": "squared", "split": GIVEN, **CASES[case]}
    prior = f"{{kind: private, data: rows.csv, rows: 600{names}}}"
    usual = {"name": "weeks", "goal": "labels", "epsilon": 2, "mechanism": "auto"}
    return parse_spec(spec(**usual, prior=prior, ledger=ledger, **parts))


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("case", CASES)
def test_a_kept_prior_has_the_same_question(folder, case):
    path = folder / "weeks.prior.json"
    first = estimate_prior(spec_of(case), folder, keep=path)
    assert json.loads(path.read_bytes())["question_sha256"] == RECORDED[case][0]
    assert estimate_prior(spec_of(case), folder, keep=path) == first


@pytest.mark.parametrize("case", CASES)
def test_a_ledger_has_the_same_question_and_answer(folder, case):
    ledger = folder / "l.db"
    create_ledger(ledger)
    set_budget(ledger, "d", 9, None)
    stated = spec_of(case, "l.db", ", data_set: d, data_version: one")
    account = account_of(stated, folder, "0" * 64, "compile")
    first = estimate_prior(stated, folder, account=account)
    entry = read_entries(ledger)[-1]
    answer = json.dumps(entry.facts["answer"], sort_keys=True).encode()
    assert (entry.facts["question_sha256"], sha256(answer)) == RECORDED[case]
    assert estimate_prior(stated, folder, account=account) == first
