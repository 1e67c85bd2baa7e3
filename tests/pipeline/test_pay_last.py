"""ε₁ is spent when nothing but the prior is missing, and what was paid for is never lost."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
from contextlib import contextmanager
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_runtime.whole_file import partial_of
from labeldp_verify.console.report import Report
from labeldp_verify.errors import Check

from labeldp_compile.build import assembly, pipeline
from labeldp_compile.cli import main
from labeldp_compile.errors import DataError
from labeldp_compile.ledger import store
from labeldp_compile.ledger.book import read_entries
from labeldp_compile.prior import obtain
from tests.fixtures.specs import spec

ARTIFACT = ["visits.certificate.json", "visits.onnx"]


class Place:
    """A folder with labels and a spec, with or without a ledger."""

    def __init__(self, folder, with_ledger, faults, once):
        self.folder, self.with_ledger, self.faults = folder, with_ledger, faults
        self.once = partial(once, pipeline)
        self.out, self.kept = folder / "out", folder / "out" / "visits.prior.json"
        self.write_labels([0, 1, 1, 2, 3, 3, 3] * 20)
        self.write_spec()
        if with_ledger:
            ledger = folder / "budget.ledger"
            assert self.run("ledger", "init", ledger).exit_code == 0
            flags = ("--data-set", "d", "--epsilon", "1")
            assert self.run("ledger", "set-budget", ledger, *flags).exit_code == 0

    def write_labels(self, labels):
        pq.write_table(pa.table({"y": labels}), self.folder / "y.parquet")

    def write_spec(self, mechanism="rr_on_bins", labels=4):
        prior, ledger = {"kind": "private", "data": "y.parquet"}, None
        if self.with_ledger:
            prior, ledger = {**prior, "data_set": "d", "data_version": "one"}, "budget.ledger"
        budget = {"split": {"prior": 0.1, "label": 0.9}, "ledger": ledger}
        text = spec(name="visits", labels=labels, mechanism=mechanism, prior=prior, **budget)
        (self.folder / "spec.yaml").write_text(text)

    def run(self, *arguments):
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    def compile(self, *flags):
        return self.run("compile", self.folder / "spec.yaml", "-o", self.out, *flags)

    def plan(self):
        return self.run("plan", self.folder / "spec.yaml")

    def spends(self):
        entries = read_entries(self.folder / "budget.ledger")
        return sum(entry.kind == "spend" for entry in entries)

    def files(self):
        return sorted(path.name for path in self.out.iterdir())

    def certificate(self):
        return json.loads((self.out / "visits.certificate.json").read_text())

    @contextmanager
    def fault(self, *stages):
        """While each stage (module, name, what happens instead) is out of order."""
        with self.faults.context() as faults:
            for module, name, instead in stages:
                faults.setattr(module, name, instead)
            yield

    def failing(self, module, name, error, from_call=1):
        """While a function raises, but not before its call number ``from_call``."""
        original, calls = getattr(module, name), []

        def called(*arguments, **keywords):
            calls.append(1)
            if len(calls) < from_call:
                return original(*arguments, **keywords)
            raise error

        return self.fault((module, name, called))

    def stop_before_solving(self):
        with self.failing(pipeline, "assemble", ValueError("no")):
            assert self.compile().exit_code == 2
        return self.kept.read_bytes()


@pytest.fixture
def place_at(tmp_path, monkeypatch, once):
    return lambda with_ledger: Place(tmp_path, with_ledger, monkeypatch, once)


@pytest.fixture(params=[False, True], ids=["file", "ledger"])
def place(request, place_at):
    return place_at(request.param)


@pytest.fixture
def unledgered(place_at):
    return place_at(False)


@pytest.fixture
def ledgered(place_at):
    return place_at(True)


@pytest.fixture
def draws(monkeypatch):
    """The histograms that were drawn, one after the other: what was spent."""
    made, draw = [], obtain.noisy_histogram

    def drawn(*arguments):
        made.append(draw(*arguments))
        return made[-1]

    monkeypatch.setattr(obtain, "noisy_histogram", drawn)
    return made


# What runs after the prior is known. A rehearsal calls all but the solver once before that.
STAGES = [("assemble", 1), ("build_certificate", 2), ("write_model", 2), ("check_bytes", 2)]
FAULTS = [ValueError("v"), RuntimeError("r"), MemoryError(), ZeroDivisionError("z"), KeyError("k")]


@pytest.mark.parametrize(
    ("stage", "error"),
    [(stage, FAULTS[(i + j) % 5]) for i, stage in enumerate(STAGES) for j in (0, 2)],
)
def test_whatever_fails_after_the_prior_keeps_it(place, draws, stage, error):
    name, from_call = stage
    module = pipeline if name == "assemble" else assembly
    with place.failing(module, name, error, from_call):
        result = place.compile()
    assert result.exit_code == 2 and len(draws) == 1
    assert "Traceback" not in result.stderr
    where = place.folder / "budget.ledger" if place.with_ledger else place.kept
    assert f"its noisy histogram is kept in {where}" in result.stderr
    assert not (place.out / "visits.onnx").exists()
    again = place.compile()
    assert again.exit_code == 0 and len(draws) == 1 and "reusing the noisy prior" in again.stderr
    assert place.files() == ARTIFACT
    assert place.certificate()["prior"]["scale"] == draws[0].scale
    assert place.certificate()["privacy"]["epsilon_prior"] == 0.1


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(143)])
def test_stopping_a_solver_keeps_the_prior(place, draws, stop):
    with place.failing(pipeline, "assemble", stop):
        result = place.compile()
    assert result.exit_code > 2 and len(draws) == 1
    told = "entry 2 spends" if place.with_ledger else f"{place.kept} keeps the noisy prior"
    assert told in result.stderr
    assert place.compile().exit_code == 0 and len(draws) == 1 and place.files() == ARTIFACT


@pytest.mark.parametrize("suffix", [".onnx", ".certificate.json", ".onnx.sig"])
def test_a_full_disk_at_the_end_keeps_the_prior(place, draws, suffix):
    whole = assembly.replaced_when_whole

    def full(path, **how):
        if path.name == f"visits{suffix}":
            raise DataError(f"{path}: cannot be written: No space left on device")
        return whole(path, **how)

    key = place.folder / "key.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True)
    with place.fault((assembly, "replaced_when_whole", full)):
        result = place.compile("--sign", key)
    assert result.exit_code == 2 and "No space left" in result.stderr and len(draws) == 1
    assert place.kept.exists() is not place.with_ledger
    again = place.compile("--sign", key, "--overwrite")
    assert again.exit_code == 0 and len(draws) == 1
    assert place.files() == [*ARTIFACT, "visits.onnx.sig"]


@pytest.mark.parametrize("suffix", [".onnx", ".certificate.json", ".onnx.sig"])
def test_a_disk_that_is_full_when_a_file_is_synced_replaces_nothing(place, suffix):
    """A new artifact beside the certificate of an earlier one would have a false description."""
    key = place.folder / "key.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True)
    assert place.compile("--sign", key).exit_code == 0
    before = {path.name: path.read_bytes() for path in place.out.iterdir()}
    name, sync = partial_of(place.out / f"visits{suffix}"), os.fsync

    def full(handle):
        if name.exists() and os.path.samestat(name.stat(), os.fstat(handle)):
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    with place.fault((os, "fsync", full)):
        result = place.compile("--sign", key, "--overwrite")
    assert result.exit_code == 2 and "No space left" in result.stderr
    after = {path.name: path.read_bytes() for path in place.out.iterdir()}
    after.pop("visits.prior.json", None)
    assert after == before


KILLED = """
import os, signal, sys
from labeldp_compile.build import pipeline
from labeldp_compile.cli import main
pipeline.assemble = lambda *problem, **options: os.kill(os.getpid(), signal.SIGKILL)
main(["compile", *sys.argv[1:]])
"""


@pytest.mark.slow
def test_a_killed_compile_leaves_the_prior_to_the_next(place, draws):
    command = [sys.executable, "-c", KILLED, place.folder / "spec.yaml", "-o", place.out]
    killed = subprocess.run(command, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    held = partial_of(place.out / "visits.compile")
    if not place.with_ledger:
        assert place.files() == [held.name, "visits.prior.json"]  # the next removes it
        assert stat.S_IMODE(place.kept.stat().st_mode) == 0o600
    assert place.compile().exit_code == 0 and draws == []
    assert place.files() == ARTIFACT


def test_a_ledger_without_room_for_the_answer_is_not_paid_from(ledgered):
    class Full:
        free = 1000

    with ledgered.fault((store.shutil, "disk_usage", lambda folder: Full)):
        result = ledgered.compile()
    assert result.exit_code == 2 and "nothing was spent" in result.stderr
    assert ledgered.spends() == 0


def test_a_spend_without_a_prior_is_named(ledgered):
    with ledgered.failing(obtain, "noisy_histogram", ZeroDivisionError()):
        assert isinstance(ledgered.compile().exception, ZeroDivisionError)
    told = "entry 2 spent ε on the same question without a noisy prior"
    assert told in ledgered.plan().stdout
    again = ledgered.compile()
    assert again.exit_code == 0 and told in again.stderr and ledgered.spends() == 2
    assert told not in ledgered.plan().stdout


@pytest.mark.parametrize("flags", [(), ("--overwrite",)])
def test_a_second_compile_at_the_same_time_pays_nothing(unledgered, draws, flags):
    place, seconds = unledgered, []
    line = [sys.executable, "-m", "labeldp_compile.cli", "compile", place.folder / "spec.yaml"]

    def second():
        before = place.files(), place.kept.read_bytes()
        run = [*line, "-o", place.out, *flags]
        seconds.append(subprocess.run(run, check=False, capture_output=True, text=True))
        assert before == (place.files(), place.kept.read_bytes())

    place.once("assemble", second)
    assert place.compile(*flags).exit_code == 0 and len(draws) == 1
    (done,) = seconds
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert "another run is writing" in done.stderr and "nothing was spent" in done.stderr
    assert "stays spent" not in done.stderr
    assert place.files() == ARTIFACT


def test_one_that_has_just_ended_is_not_paid_for_again(unledgered, draws):
    def earlier():
        assert unledgered.compile().exit_code == 0

    unledgered.once("hold_saved_prior", earlier)
    second = unledgered.compile()
    assert second.exit_code == 2 and "exists already" in second.stderr
    assert len(draws) == 1 and unledgered.files() == ARTIFACT


def test_another_question_or_other_data_are_not_answered_by_it(unledgered, draws):
    before = unledgered.stop_before_solving()
    unledgered.write_spec(labels=5)
    result = unledgered.compile()
    assert result.exit_code == 2 and "domain" in result.stderr and "delete" in result.stderr
    unledgered.write_spec()
    unledgered.write_labels([0, 1, 2, 3] * 35)
    result = unledgered.compile()
    assert result.exit_code == 2 and "time of change" in result.stderr
    assert unledgered.kept.read_bytes() == before and len(draws) == 1
    unledgered.kept.unlink()
    assert unledgered.compile().exit_code == 0 and len(draws) == 2


def test_a_seeded_compile_leaves_the_kept_prior_alone(unledgered):
    before = unledgered.stop_before_solving()
    assert unledgered.compile("--insecure-test-seed", "1").exit_code == 0
    assert unledgered.kept.read_bytes() == before


def test_the_file_confirms_no_guess_of_the_labels(unledgered):
    """It knows the data by name, size and time; only the counts are computed from labels."""
    facts = json.loads(unledgered.stop_before_solving())
    assert set(facts["data"]) == {"name", "size", "modified_ns"}
    histogram = {"question_sha256", "epsilon", "sizes", "levels"}
    assert set(facts) == {"format_version", "data"} | histogram


MECHANISMS = [
    "{kind: randomized_response}",
    "{kind: rr_on_bins}",
    "{kind: rr_with_prior}",
    "{kind: rr_top_k, k: 2}",
    "{kind: optimal_unbiased}",
    "{kind: optimal_unbiased, bias: {sample_size: 1}}",
    "{kind: optimal_unbiased, outputs: {grid: 9}}",
    "{kind: debiased_rr}",
    "{kind: laplace}",
    "{kind: staircase, clip: true}",
    "{kind: exponential}",
]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_no_verifier_would_pass_is_refused_before_it_is_paid(place, mechanism):
    """Plan refuses it, too, and in the same words; without the fault both pass."""
    refusal = Report((Check("tables", False, "planted"),), None)
    place.write_spec(mechanism)
    with place.fault(
        (obtain, "noisy_histogram", None),
        (assembly, "check_bytes", lambda model, **options: refusal),
    ):
        result, planned = place.compile(), place.plan()
    assert result.exit_code == 2 and "planted" in result.stderr and not place.out.exists()
    assert planned.exit_code == 2 and planned.stderr == result.stderr
    assert not place.with_ledger or place.spends() == 0
    assert place.plan().exit_code == place.compile().exit_code == 0
