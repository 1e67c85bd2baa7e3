"""Planted regressions are caught, each by the gate that is there for it; harmless changes pass.

``labeldp check`` with one policy looks at all files of a small company. ``plan --policy``, saved
plans, ``compile --check`` and ``diff`` are the gates before and after it.
"""

import json
import os
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_verify import check_bytes

from labeldp_compile.check.policy import GatePolicy, LoadedPolicy
from labeldp_compile.check.rules import findings
from labeldp_compile.check.subject import Subject
from labeldp_compile.ledger.book import in_transaction
from labeldp_compile.ledger.entries import next_entry
from labeldp_compile.ledger.store import open_store
from tests.policy.company import (
    POLICY,
    ROWS,
    SPEC,
    changed,
    company,
    compiled,
    copied,
    done,
    labeldp,
    run,
    write,
)

CHECK = ("check", "build", "runs", "budget.ledger", "--policy", "policy.yaml")
JSON = (*CHECK, "--format", "json")


def unbooked():
    """The spec without its ledger."""
    return changed(SPEC, privacy__ledger=None, prior__data_set=None, prior__data_version=None)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """The company as it is, and artifacts of changed specs, compiled once."""
    folder = tmp_path_factory.mktemp("company")
    company(folder)
    free = changed(SPEC, privacy={"epsilon": 0.9, "labels_per_user": 1}, prior={"kind": "uniform"})
    counted = {"kind": "public", "data": "../visits.parquet"}
    more = {"epsilon": 1.1, "split": {"prior": 0.2, "label": 0.9}, "labels_per_user": 1}
    variants = {
        "a millionth more": changed(free, privacy__epsilon=0.900001),
        "4 labels": changed(free, privacy__labels_per_user=4),
        "no person": changed(free, privacy__labels_per_user=None),
        "mechanism": changed(free, mechanism={"kind": "rr_with_prior"}),
        "noisy": changed(free, privacy__epsilon=0.05),
        "unbooked": unbooked(),
        "more for the prior": changed(unbooked(), privacy=more),
        "a person": changed(
            free,
            privacy={
                "epsilon": 1.6,
                "unit": "person",
                "person_column": "person",
                "labels_per_person": 2,
            },
        ),
        "groups": changed(
            free,
            prior=counted,
            privacy__labels_per_user=None,
            groups={"column": "site", "values": [0, 1]},
        ),
    }
    for name, spec in variants.items():
        other = folder / "variants" / name
        (other / "specs").mkdir(parents=True)
        for file in ("visits.parquet", "release-secret.pem"):
            os.link(folder / file, other / file)
        compiled(other, spec)
    return folder


@pytest.fixture
def here(original, tmp_path):
    return copied(original, tmp_path / "company")


def take(folder, name):
    """Deploy the artifact of another spec, with that spec and a good signature."""
    for place in ("build", "specs"):
        copied_from = folder / "variants" / name / place
        for file in copied_from.iterdir():
            (folder / place / file.name).write_bytes(file.read_bytes())


def artifact(folder):
    return folder / "build" / "visits.onnx"


def demand(folder, **changes):
    write(folder / "policy.yaml", changed(POLICY, **changes))


def spend(folder, epsilon, days_ago, name="other", version="v1", time=None):
    """An entry of the ledger, as it was written some days ago."""
    time = time or f"{datetime.now(UTC) - timedelta(days=days_ago):%Y-%m-%dT%H:%M:%SZ}"

    def add(ledger):
        for kind, facts in (
            ("budget", {"data_set": name, "epsilon": "1/2"}),
            (
                "spend",
                {
                    "data_set": name,
                    "data_version": version,
                    "epsilon": str(Fraction(epsilon)),
                    "spec": "s",
                    "spec_sha256": "0" * 64,
                    "command": "compile",
                    "question_sha256": os.urandom(32).hex(),
                },
            ),
        ):
            entry = next_entry(ledger.entries, kind, {**facts, "time": time})
            ledger.rows.add(entry)
            ledger.entries.append(entry)

    in_transaction(open_store(folder / "budget.ledger"), add)


def draw(folder, key):
    """Private labels under a key, booked."""
    labels = {"id": [1, 2, 3], "visits": [0, 1, 2]}
    pq.write_table(pa.table(labels), folder / "labels.parquet")
    if not (folder / f"{key}.key").exists():
        done("keygen", f"{key}.key", where=folder)
    words = ["randomize", "build/visits.onnx", "labels.parquet", "-o", "private.parquet"]
    words += ["--key", f"{key}.key", "--id-column", "id", "--ledger", "budget.ledger"]
    done(*words, "--data-set", "clinic", "--overwrite", where=folder)


def parts(folder):
    """A folder of two parts with a manifest, among the artifacts."""
    pq.write_table(pa.table({"id": [1, 2, 3], "visits": [0, 1, 2]}), folder / "labels.parquet")
    if not (folder / "one.key").exists():
        done("keygen", "one.key", where=folder)
    words = ["randomize", "build/visits.onnx", "labels.parquet", "-o", "build/parts", "--append"]
    done(*words, "--key", "one.key", "--id-column", "id", "--part", "monday", where=folder)
    return folder / "build/parts/monday.parquet"


def alter_ledger(folder):
    with sqlite3.connect(folder / "budget.ledger") as file:
        for (trigger,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            file.execute(f"DROP TRIGGER {trigger}")
        file.execute("UPDATE entries SET body = replace(body, '0.1', '0.2')")
        file.execute("UPDATE entries SET body = replace(body, '1/10', '1/20')")


def edit(folder, **changes):
    write(folder / "specs" / "visits.yaml", changed(SPEC, **changes))


def flip(folder):
    data = bytearray(artifact(folder).read_bytes())
    data[len(data) // 2] ^= 1
    artifact(folder).write_bytes(data)


def test_seed(folder):
    write(folder / "specs" / "visits.yaml", unbooked())
    words = ("-o", "build", "--overwrite", "--insecure-test-seed", "1", "--quiet")
    done("compile", "specs/visits.yaml", *words, "--sign", "release-secret.pem", where=folder)


test_seed.__test__ = False


def device(folder):
    """A pipe here was waited for without an end."""
    (folder / "runs/run/stages/1").mkdir(parents=True)
    (folder / "runs/run/stages/1/metrics.jsonl").symlink_to("/dev/null")


# What is planted; the rule of the policy that finds it.
CAUGHT = {
    "ε larger by a millionth": (lambda f: take(f, "a millionth more"), "max_epsilon_label"),
    "a prior that spends more": (lambda f: take(f, "more for the prior"), "max_epsilon_total"),
    "too many labels a person": (lambda f: take(f, "4 labels"), "max_labels_per_person"),
    "nothing about persons": (lambda f: take(f, "no person"), "max_epsilon_person"),
    "another mechanism": (lambda f: take(f, "mechanism"), "mechanisms"),
    "an unbooked prior": (lambda f: take(f, "unbooked"), "prior_booked"),
    "too much noise": (lambda f: take(f, "noisy"), "usefulness"),
    "small groups": (
        lambda f: (demand(f, min_group_rows=ROWS), take(f, "groups")),
        "min_group_rows",
    ),
    "labels that were drawn twice": (
        lambda f: (demand(f, max_epsilon_dataset=None), draw(f, "one"), draw(f, "two")),
        "draw_once",
    ),
    "labels that spend the data set": (lambda f: draw(f, "one"), "max_epsilon_dataset"),
    "no signature": (lambda f: (f / "build/visits.onnx.sig").unlink(), "signed_by"),
    "the wrong key": (lambda f: compiled(f, SPEC, sign="stranger"), "signed_by"),
    "a bit of the artifact": (flip, "verified"),
    "a test seed": (test_seed, "verified"),
    "a stale artifact": (lambda f: edit(f, privacy__labels_per_user=1), "specs"),
    "an artifact without a spec": (
        lambda f: edit(f, name="other"),
        "specs",
    ),
    "a raised budget": (
        lambda f: done(
            *("ledger", "set-budget", "budget.ledger", "--data-set", "clinic", "--epsilon", 2),
            where=f,
        ),
        "max_epsilon_dataset",
    ),
    "too much in a month": (
        lambda f: [spend(f, "0.15", days) for days in (5, 20)],
        "max_epsilon_period",
    ),
    "an altered ledger of its own": (
        lambda f: (demand(f, prior_booked=None), alter_ledger(f)),
        "verified",
    ),
    "a run with δ": (lambda f: run(f, delta=1e-4, name="two"), "max_delta"),
    "a run without privacy": (lambda f: run(f, kind="none", name="two"), "private"),
    "a run of each label": (
        lambda f: run(f, user_column=None, max_examples_per_user=None, name="two"),
        "max_epsilon_person",
    ),
    "a run that promises less than its config": (
        lambda f: (f / "runs/run/privacy.json").write_text(
            (f / "runs/run/privacy.json").read_text().replace("0.5", "0.1")
        ),
        "verified",
    ),
    "a run that states two numbers for ε": (
        lambda f: (f / "runs/run/privacy.json").write_text(
            (f / "runs/run/privacy.json").read_text().replace("{", '{"epsilon": 0.1, ', 1)
        ),
        "verified",
    ),
    "a run with a device for a file": (device, "verified"),
    "a part that was changed": (lambda f: pq.write_table(pa.table({}), parts(f)), "verified"),
    "true labels among the parts": (
        lambda f: shutil.copy(f / "labels.parquet", parts(f).with_name("tuesday.parquet")),
        "verified",
    ),
    "a damaged manifest": (
        lambda f: parts(f).with_name("_labeldp.json").write_text("{}"),
        "verified",
    ),
    "an artifact that hides among parts": (
        lambda f: parts(f).with_name("bad.onnx").write_text("no artifact"),
        "verified",
    ),
    "a link": (lambda f: (f / "build/x.onnx").symlink_to("visits.onnx"), "verified"),
    "a pipe": (lambda f: os.mkfifo(f / "build/pipe.onnx"), "verified"),
}


@pytest.fixture(scope="module", autouse=True)
def verified_once():
    """The same bytes verify again in the same way: each are verified once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labeldp_compile.check.verdicts.check_bytes", cache(check_bytes))
        yield


@pytest.mark.parametrize("planted", CAUGHT)
def test_a_planted_regression_is_caught(planted, here):
    plant, rule = CAUGHT[planted]
    demand(here)
    plant(here)
    result = labeldp(*JSON, where=here)
    assert result.exit_code == 1, result.output
    document = json.loads(result.stdout)
    failed = [f["rule"] for one in document["files"] for f in one["findings"] if not f["ok"]]
    assert not document["ok"] and rule in failed


def lie_beside(folder):
    """Files and folders that no policy is about."""
    build = folder / "build"
    (build / "README.md").write_text("hello")
    (build / ".keep").write_text("")
    (build / "README").symlink_to("visits.certificate.json")
    (build / "empty").mkdir()
    (build / "app").mkdir()
    (build / "app/config.yaml").write_text("a: 1")
    (folder / "runs/run/notes.txt").write_text("x")
    (build / "visits.onnx.sigstore.json").write_text("{}")
    write(folder / "specs/new.yaml", changed(SPEC, name="new"))
    write(folder / "specs/ci.yaml", {"jobs": [1]})
    done("ledger", "init", "build/other.ledger", where=folder)


def move(folder):
    """Another name, folder, time and mode of the artifact, without its certificate."""
    (folder / "build/2026").mkdir()
    for name in ("visits.onnx", "visits.onnx.sig"):
        other = folder / "build/2026" / name.replace("visits", "besøk 1")
        (folder / "build" / name).rename(other)
        os.utime(other, (0, 0))
        other.chmod(0o444)
    (folder / "build/visits.certificate.json").unlink()


HARMLESS = {
    "what lies beside": lie_beside,
    "where it is": move,
    "a folder of parts": parts,
    "the second key": lambda f: compiled(f, SPEC, sign="second"),
    "compiled again, from the ledger": lambda f: compiled(f, SPEC),
    "a second artifact": lambda f: compiled(
        f, changed(SPEC, name="more", mechanism={"kind": "optimal_unbiased"}), name="more"
    ),
    "large groups": lambda f: [
        demand(f, max_epsilon_person=None, max_labels_per_person=None),
        take(f, "groups"),
    ],
    "ε of a person": lambda f: (take(f, "a person"), demand(f, adjacency=["person"])),
    "the same draw again": lambda f: (
        demand(f, max_epsilon_dataset=None, max_epsilon_period=None, max_epsilon_person=None),
        draw(f, "one"),
        draw(f, "one"),
    ),
    "spending in two months": lambda f: [spend(f, "0.15", days) for days in (40, 5)],
    "a portable file, signed": lambda f: done(
        *("export", "--to", "portable", "build/visits.onnx", "-o", "build/port"),
        *("--sign", "release-secret.pem"),
        where=f,
    ),
}


@pytest.mark.parametrize("change", HARMLESS)
def test_a_harmless_change_is_not_blocked(change, here):
    demand(here)
    HARMLESS[change](here)
    result = labeldp(*CHECK, where=here)
    assert result.exit_code == 0, result.output


def drawn(*changes):
    """The findings about draws that a ledger has booked, one entry each."""
    first = {"data_set": "clinic", "column": "visits", "part": "day-1", "artifact_sha256": "a"}
    first |= {"key": "k", "context": "visits", "version": 0}
    entries = []
    for change in changes:
        entries.append(next_entry(entries, "draw", {**first, **change}))
    policy = LoadedPolicy(GatePolicy(version=1, draw_once=True), None, "")
    return list(findings(Subject(kind="ledger", entries=tuple(entries)), policy))


@pytest.mark.parametrize("change", [{"key": "other"}, {"version": 1}, {"artifact_sha256": "b"}])
def test_a_label_drawn_twice_is_caught(change):
    (found,) = drawn({}, change)
    assert not found.ok and "entry 1 draws clinic visits day-1 again" in found.text


# Before anything is spent.


def spent(folder):
    result = done("ledger", "show", "budget.ledger", "--json", where=folder)
    return json.loads(result.stdout)["data_sets"]["clinic"]["exact"]["spent"]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        (
            {"privacy__epsilon": 2, "privacy__split": {"prior": 0.1, "label": 1.9}},
            "max_epsilon_label",
        ),
        ({"privacy__labels_per_user": 5}, "max_labels_per_person"),
        ({"privacy__labels_per_user": None}, "max_epsilon_person"),
        ({"mechanism": {"kind": "rr_with_prior"}}, "mechanisms"),
        ({"label__domain__max": 200}, "usefulness"),
        (
            {"privacy__epsilon": 1.0, "privacy__split": {"prior": 0.15, "label": 0.85}},
            "max_epsilon_period",
        ),
    ],
)
def test_a_plan_that_the_policy_does_not_allow_is_refused(changes, rule, here):
    demand(here)
    done(
        "ledger", "set-budget", "budget.ledger", "--data-set", "clinic", "--epsilon", 5, where=here
    )
    write(here / "specs" / "visits.yaml", changed(SPEC, **changes))
    words = ("plan", "specs/visits.yaml", "--policy", "policy.yaml", "--out", "visits.plan")
    result = labeldp(*words, where=here)
    assert result.exit_code == 1 and f"FAILED {rule}: " in result.stdout
    assert not (here / "visits.plan").exists() and spent(here) == "1/10"
    as_json = labeldp(*words[:4], "--json", where=here)
    failed = [
        one["rule"] for one in json.loads(as_json.stdout)["policy"]["findings"] if not one["ok"]
    ]
    assert as_json.exit_code == 1 and rule in failed


def test_a_plan_counts_what_a_machine_spent_whose_clock_is_ahead(here):
    """As ``check`` does afterwards, which counts each period of the ledger."""
    demand(here)
    spend(here, "0.05", -1 / 24, "clinic")
    edit(here, prior__data_version="v2")
    words = ("plan", "specs/visits.yaml", "--policy", "policy.yaml")
    result = labeldp(*words, where=here)
    assert result.exit_code == 1 and "FAILED max_epsilon_period: " in result.stdout


@pytest.mark.parametrize("time", ["2026-02-30T00:00:00Z", "0000-01-01T25:00:00Z"])
def test_a_time_that_no_clock_shows_is_one_error(time, here):
    """Anyone who may insert rows into a shared ledger can write one."""
    demand(here)
    spend(here, "0.01", 0, "clinic", time=time)
    edit(here, prior__data_version="v2")
    plan = labeldp("plan", "specs/visits.yaml", "--policy", "policy.yaml", where=here)
    assert plan.exit_code == 2 and f"has an impossible time: {time}" in plan.stderr
    check = labeldp("check", "budget.ledger", "--policy", "policy.yaml", where=here)
    assert check.exit_code == 1 and f"has an impossible time: {time}" in check.stdout


# Afterwards: is it current, and what does it break.
