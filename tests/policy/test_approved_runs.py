"""``labeldp report --approve`` signs the statement of a run that it checked, and no other one."""

import json

import pytest

from labeldp_compile.report import approval
from tests.policy.company import key, labeldp, run, write

TEXTS = ("purpose", "owner", "recipients", "retention", "by")


@pytest.fixture
def approve(here):
    """Approve the run of a folder under a policy of at most ε = 0.6."""
    key(here, "officer")
    write(here / "policy.yaml", {"version": 1, "max_epsilon_label": 0.6, "max_delta": 0.001})
    words = [part for name in TEXTS for part in (f"--{name}", "x")]
    command = ("report", "runs/run", "--approve", "officer-secret.pem", *words)
    return lambda *more: labeldp(*command, *more, where=here)


def test_a_run_is_approved(approve, here):
    path = run(here)
    done = approve("--policy", "policy.yaml")
    assert done.exit_code == 0, done.stderr
    data = (path / "privacy.json").read_bytes()
    page = ("report", "runs/run", "-o", "report.html", "--approver", "officer.pem")
    assert labeldp(*page, where=here).exit_code == 0
    assert "Signed with the key" in (here / "report.html").read_text("utf-8")
    other = approve("--approval", "runs/run/privacy.json", "--overwrite")
    assert other.exit_code == 2 and "is inside the input" in other.stderr
    assert (path / "privacy.json").read_bytes() == data


def test_an_approval_is_not_of_another_run_with_the_same_promise(approve, here):
    path, other = run(here), run(here, name="other")  # of two configs
    assert (path / "privacy.json").read_bytes() == (other / "privacy.json").read_bytes()
    assert approve().exit_code == 0
    (path / "approval.json").rename(other / "approval.json")
    for more in ((), ("--approver", "officer.pem")):
        done = labeldp("report", "runs/other", "-o", "report.html", *more, where=here)
        assert done.exit_code == 2 and "approves another file" in done.stderr
    assert not (here / "report.html").exists()


@pytest.mark.parametrize("options", [(), ("--policy", "policy.yaml")])
def test_a_statement_that_changes_while_it_is_checked_is_not_signed(
    options, approve, here, monkeypatch
):
    """What is read first, and signed, is the larger ε; what the policy sees is the smaller one."""
    path = run(here)
    small = (path / "privacy.json").read_text()
    (path / "privacy.json").write_text(json.dumps(json.loads(small) | {"epsilon": 5.0}))
    read = approval.read_subjects

    def and_then(of):
        data = read(of)
        (path / "privacy.json").write_text(small)
        return data

    monkeypatch.setattr(approval, "read_subjects", and_then)
    done = approve(*options)
    assert done.exit_code == 1 and "changed while it was checked; not approved" in done.stderr
    assert not (path / "approval.json").exists()


def test_another_approval_that_was_signed_meanwhile_is_not_replaced(approve, here, monkeypatch):
    path, stated = run(here), approval.responsible

    def and_then(*facts):
        (path / "approval.json").write_text("another officer's")
        return stated(*facts)

    monkeypatch.setattr(approval, "responsible", and_then)
    done = approve()
    assert done.exit_code == 2 and "exists already; use --overwrite" in done.stderr
    assert (path / "approval.json").read_text() == "another officer's"
