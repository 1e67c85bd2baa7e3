"""``labeldp.yaml`` beside specs and artifacts, and a folder of specs that is compiled whole."""

import json
import os
from pathlib import Path

import pytest
import yaml

from labeldp_compile.build import pipeline
from labeldp_compile.errors import InputError
from labeldp_compile.project import project_schema
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec
from tests.policy.company import SPEC, changed, done, labeldp, table, write

KEYS = {"version": 1, "ledger": "../budget.ledger", "data_set": "clinic", "data_version": "v1"}
PLAIN = changed(
    SPEC,
    privacy__ledger=None,
    privacy__labels_per_user=None,
    prior__data_set=None,
    prior__data_version=None,
)
STRICT, LAX = ({"version": 1, "max_epsilon_label": most} for most in (0.5, 5))
RANDOMIZE = ("randomize", "s/kept.onnx", "visits.parquet", "-o", "out.parquet")


@pytest.fixture
def place(here):
    """Two specs, a project file beside them, and ledgers with room for both."""
    table(here)
    for name in ("budget", "other"):
        done("ledger", "init", f"{name}.ledger", where=here)
        budget = ("--data-set", "clinic", "--epsilon", 1)
        done("ledger", "set-budget", f"{name}.ledger", *budget, where=here)
    (here / "s").mkdir()
    (here / "s/kept.onnx").write_bytes(compile_text(spec(column="visits", labels=4)).model)
    write(here / "s/visits.yaml", PLAIN)
    write(here / "s/site.yaml", changed(PLAIN, name="site", label__column="site"))
    write(here / "s/labeldp.yaml", KEYS)
    write(here / "strict.yaml", STRICT)
    write(here / "lax.yaml", LAX)
    return here


def kinds(place, ledger="budget.ledger"):
    shown = json.loads(done("ledger", "show", ledger, "--json", where=place).stdout)
    return [entry["kind"] for entry in shown["entries"][2:]]


def untouched(place):
    booked = [*kinds(place), *kinds(place, "other.ledger")]
    return not booked and [path.name for path in place.rglob("*.onnx")] == ["kept.onnx"]


def refused(place, *words, code=2):
    """The message of a command that spends and writes nothing."""
    result = labeldp(*words, where=place)
    assert result.exit_code == code and untouched(place) and not result.stdout, result.output
    return result.stderr


def test_the_schema_is_current():
    file = Path(__file__).parents[2] / "specs/labeldp-project.schema.json"
    assert file.read_text(encoding="utf-8") == project_schema(), "run: make schema"


def test_everything_beside_the_file_is_booked(place):
    for words in (("compile", "s"), RANDOMIZE):
        assert done(*words, where=place).stderr.startswith("using s/labeldp.yaml: ledger ")
    assert kinds(place) == ["spend", "prior", "spend", "prior", "draw"]
    done("sweep", "s/visits.yaml", "--epsilon", "1", "--spend-prior", "--json", where=place)
    assert len(kinds(place)) == 5  # recalled


def test_a_file_in_another_folder_says_nothing(place):
    (place / "labeldp.yaml").write_text("not: [yaml")
    (place / "s/labeldp.yaml").unlink()
    done("compile", "s", where=place)
    done(*RANDOMIZE, where=place)
    assert not kinds(place)


WRONG = {
    "an unknown key": (changed(KEYS, budget=1), "budget: unknown key"),
    "half a place": (changed(KEYS, data_set=None), "give all three"),
    "nothing": ({"version": 1}, "states nothing"),
    "another version": (changed(KEYS, version=2), "version"),
    "a password": (changed(KEYS, ledger="postgresql://u:secret@h/d"), "~/.pgpass"),
    "another scheme": (changed(KEYS, ledger="mysql://u:secret@h/d"), "postgresql://"),
    "a server of its author": (changed(KEYS, ledger="postgresql://host/d"), "config.toml"),
    "a missing policy": (changed(KEYS, policy="none.yaml"), "is no file"),
    "a device as policy": (changed(KEYS, policy="/dev/stdin"), "is no file"),
    "a NUL": (changed(KEYS, policy="a\0b"), "is no file"),
    "a NUL in the ledger": (changed(KEYS, ledger="a\0b"), "is not a file name"),
    "a spec": (PLAIN, "this is a spec"),
    "no mapping": ([1], "expected a mapping"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_an_error(place, case):
    keys, reason = WRONG[case]
    write(place / "s/labeldp.yaml", keys)
    for words in (("compile", "s/visits.yaml", "-o", "b"), ("compile", "s"), RANDOMIZE):
        message = refused(place, *words)
        assert reason in message and "secret" not in message and "Traceback" not in message


@pytest.mark.parametrize("name", ["labeldp.yaml", "labeldp.yml"])
@pytest.mark.parametrize("kind", ["a link", "a broken link", "a folder", "a pipe"])
def test_what_is_no_ordinary_file_is_not_passed_over(place, name, kind):
    path = place / "s" / name
    (place / "s/labeldp.yaml").rename(place / "moved.yaml")
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("../moved.yaml" if kind == "a link" else "none.yaml")
    for words in (("plan", "s/visits.yaml"), ("compile", "s"), RANDOMIZE):
        assert f"s/{name}: is " in refused(place, *words)


@pytest.mark.parametrize("key", ["ledger", "data_set", "data_version"])
def test_a_spec_may_repeat_what_the_file_says_and_not_differ(place, key):
    part, own = ("privacy", "../other.ledger") if key == "ledger" else ("prior", "other")
    write(place / "s/visits.yaml", changed(PLAIN, **{f"{part}__{key}": own}))
    message = refused(place, "compile", "s/visits.yaml", "-o", "b")
    assert f"{part}.{key}: differs from s/labeldp.yaml" in message
    same = str(place / "budget.ledger") if key == "ledger" else KEYS[key]
    write(place / "s/visits.yaml", changed(PLAIN, **{f"{part}__{key}": same}))
    done("compile", "s/visits.yaml", where=place)
    assert kinds(place) == ["spend", "prior"]


def test_options_may_repeat_what_the_file_says_and_not_differ(place):
    done("compile", "s", where=place)
    before = kinds(place)
    for options in (("--ledger", "other.ledger", "--data-set", "clinic"), ("--data-set", "c")):
        result = labeldp(*RANDOMIZE, *options, where=place)
        assert result.exit_code == 2 and not (place / "out.parquet").exists()
        assert f"{options[0]}: differs from s/labeldp.yaml" in result.stderr
    assert kinds(place) == before and not kinds(place, "other.ledger")
    done(*RANDOMIZE, "--ledger", place / "s/../budget.ledger", where=place)
    assert kinds(place) == [*before, "draw"]


def test_both_policies_must_be_met(place):
    for own, option in (("strict", "lax"), ("lax", "strict")):
        write(place / "s/labeldp.yaml", changed(KEYS, policy=f"../{own}.yaml"))
        plan = labeldp("plan", "s/visits.yaml", "--policy", f"{option}.yaml", where=place)
        assert plan.exit_code == 1 and "strict.yaml" in plan.stdout.splitlines()[-1]
        words = ("plan", "s/visits.yaml", "--json", "--policy", f"{option}.yaml")
        shown = json.loads(labeldp(*words, where=place).stdout)
        assert shown["policy"]["ok"] == (option == "lax")
        assert shown["project_policy"]["ok"] == (own == "lax")
        assert untouched(place)


def test_what_does_not_meet_the_policy_is_not_compiled_and_not_randomized(place):
    write(place / "s/labeldp.yaml", {"version": 1, "policy": "../strict.yaml"})
    for words in (("compile", "s"), ("compile", "s/visits.yaml", "-o", "b", "--quiet")):
        assert "NOT ALLOWED by s/../strict.yaml: max_epsilon_label" in refused(
            place, *words, code=1
        )
    (place / "s/labeldp.yaml").unlink()
    done("compile", "s", where=place)
    write(place / "s/labeldp.yaml", changed(KEYS, policy="../strict.yaml"))
    for words in (RANDOMIZE, ("compile", "s")):  # also where all artifacts are current
        result = labeldp(*words, where=place)
        assert result.exit_code == 1 and "NOT ALLOWED" in result.stderr and not result.stdout
    assert not kinds(place) and not (place / "out.parquet").exists()


def test_a_policy_counts_what_all_specs_spend_together(place):
    write(place / "lax.yaml", {"version": 1, "max_epsilon_dataset": 0.15})
    write(place / "s/labeldp.yaml", changed(KEYS, policy="../lax.yaml"))
    assert "max_epsilon_dataset" in refused(place, "compile", "s", code=1)
    done("compile", "s/visits.yaml", where=place)


def test_two_specs_that_share_a_prior_are_counted_once(place):
    """The ledger recalls it for the second: the check of a folder counted it again."""
    write(place / "lax.yaml", {"version": 1, "max_epsilon_dataset": 0.15})
    write(place / "s/labeldp.yaml", changed(KEYS, policy="../lax.yaml"))
    write(place / "s/site.yaml", changed(PLAIN, name="again"))
    done("compile", "s", where=place)
    assert kinds(place) == ["spend", "prior"]


def test_a_sweep_spends_only_what_the_policy_allows(place):
    words = ("sweep", "s/visits.yaml", "--epsilon", "1", "--json")
    write(place / "s/labeldp.yaml", changed(KEYS, policy="../strict.yaml"))
    message = refused(place, *words, "--spend-prior", code=1)
    assert message.startswith("using s/labeldp.yaml: ledger ") and "max_epsilon_label" in message
    write(place / "s/labeldp.yaml", changed(KEYS, policy="../lax.yaml"))
    done(*words, "--spend-prior", where=place)
    assert kinds(place) == ["spend", "prior"]


def test_a_saved_plan_is_not_done_after_the_file_changed(place):
    done("plan", "s/visits.yaml", "--out", "visits.plan", where=place)
    write(place / "s/labeldp.yaml", changed(KEYS, ledger="../other.ledger"))
    assert "changed since" in refused(place, "compile", "visits.plan", "-o", "b", code=1)
    (place / "s/labeldp.yaml").unlink()
    assert "changed since" in refused(place, "compile", "visits.plan", "-o", "b", code=1)


LARGE = {"epsilon": 2, "split": {"prior": 0.9, "label": 1.1}}
BAD = {
    "a wrong spec": (changed(PLAIN, name="z", loss="sqared"), 2, "did you mean 'squared'"),
    "a misspelt key": (changed(PLAIN, name="z", label=None, lable={}), 2, "lable: unknown key"),
    "one name": (changed(PLAIN, name="Visits"), 2, "has the name 'Visits', too"),
    "no data": (changed(PLAIN, name="z", prior__data="none.csv"), 2, "none.csv"),
    "over budget": (changed(PLAIN, name="z", privacy=LARGE), 1, "over budget"),
    "no YAML": ("[", 2, "zz.yaml"),
}


@pytest.mark.parametrize("case", BAD)
def test_one_bad_spec_stops_a_folder_before_anything_is_spent(place, case):
    stated, code, reason = BAD[case]
    text = stated if isinstance(stated, str) else yaml.safe_dump(stated)
    (place / "s/zz.yaml").write_text(text)
    assert reason in refused(place, "compile", "s", code=code)


def test_a_folder_without_specs_is_refused(place):
    (place / "empty").mkdir()
    write(place / "empty/policy.yaml", LAX)
    assert "empty: has no spec" in refused(place, "compile", "empty")
    (place / "s/old.yaml").symlink_to("none.yaml")
    assert "old.yaml: is no ordinary file" in refused(place, "compile", "s")


def test_an_output_that_exists_stops_a_folder(place):
    (place / "s/visits.certificate.json").touch()
    assert "exists already" in refused(place, "compile", "s")


@pytest.mark.parametrize("kind", [InputError, KeyboardInterrupt])
def test_after_a_failure_the_next_run_compiles_the_rest(place, monkeypatch, kind):
    assemble = pipeline.assemble

    def fails(stated, *rest, **more):
        if stated.name == "visits":
            raise kind("made up")
        return assemble(stated, *rest, **more)

    monkeypatch.setattr(pipeline, "assemble", fails)
    result = labeldp("compile", "s", where=place)
    assert result.exit_code != 0 and result.stdout == "s/site.onnx\n"
    told = "made up" if kind is InputError else "interrupted"
    assert told in result.stderr and not (place / "s/visits.onnx").exists()
    monkeypatch.undo()
    written = (place / "s/site.onnx").stat().st_mtime_ns
    again = done("compile", "s", where=place)
    assert again.stdout == "s/site.onnx\ns/visits.onnx\n" and "site.yaml and stays" in again.stderr
    assert (place / "s/site.onnx").stat().st_mtime_ns == written
    assert kinds(place) == ["spend", "prior", "spend", "prior"]
    done("compile", "s", "--check", where=place)


def test_init_writes_a_folder_whole_or_not_at_all(place):
    write(place / "costs.yaml", {})
    (place / "costs.csv").write_text("y,0,1\n0,0,3\n1,1,0\n")
    words = ("init", "visits.parquet", "--columns", "visits,site", "--range", "0..3", "-o", "new")
    columns = ("--range", "site=0..1", "--loss", "site=matrix=costs.csv", "--epsilon", "site=0.5")
    wrong = labeldp(*words, "--range", "site=1..0", "--yes", where=place)
    assert wrong.exit_code == 2 and "site:\nlabeldp: --range" in wrong.stderr
    assert not [*place.glob("*new*")]
    right = done(*words, *columns, "--goal", "labels", "--prior", "uniform", "--yes", where=place)
    assert right.stdout == "new\n" and "ε = 1.5 in total" in right.stderr
    assert sorted(path.name for path in (place / "new").iterdir()) == ["site.yaml", "visits.yaml"]
    done("compile", "new", "-o", "build", where=place)
    assert labeldp(*words, *columns, "--yes", where=place).exit_code == 2
