"""``labeldp plan``: what it says is what the compile that follows does, and it reads no label."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from labeldp_compile.build.pipeline import compile_to
from labeldp_compile.build.plan import plan_spec
from labeldp_compile.prior import obtain
from labeldp_compile.tabular import reader
from labeldp_compile.tabular.reader import TableReader
from tests.cli.test_cli import labeldp
from tests.fixtures.specs import spec

ROWS, SIZE = 5000, 10
GIVEN = {"split": {"prior": 0.25, "label": 1.75}}


def counted(data="visits.parquet", **more):
    return {"kind": "private", "data": data, **more}


@pytest.fixture
def place(here):
    labels = np.random.default_rng(0).poisson(2.0, ROWS)
    table = pa.table({"id": [f"{i:05}" for i in range(ROWS)], "visits": labels})
    pq.write_table(table, "visits.parquet")
    pa_csv.write_csv(table, "visits.csv")
    return here


def spec_in(place, **changes):
    base = {"column": "visits", "name": "visits", "epsilon": 2, "prior": counted()}
    (place / "spec.yaml").write_text(spec(**{**base, **changes}), encoding="utf-8")
    return place / "spec.yaml"


def planned(place, **changes):
    return json.loads(labeldp("plan", spec_in(place, **changes), "--json").stdout)


CASES = {
    "parquet": {},
    "csv": {"prior": counted("visits.csv", rows=ROWS)},
    "given": GIVEN,
    "csv given": {"prior": counted("visits.csv"), **GIVEN},
    "public": {"prior": {"kind": "public", "data": "visits.csv"}},
    "uniform": {"prior": "uniform"},
    "auto": {"mechanism": "auto"},
}


@pytest.mark.parametrize("case", CASES)
def test_the_compile_that_follows_spends_what_was_planned(place, case):
    plan = planned(place, **CASES[case])
    artifact, _ = compile_to(place / "spec.yaml", place / "build", test_seed=1)
    certificate = artifact.certificate.to_json()
    for part in ("total", "prior", "label"):
        key = f"epsilon_{part}"
        assert plan["privacy"]["exact"][key] == certificate["exact"][key]
        assert plan["privacy"][key] == certificate["privacy"][key]
    assert plan["labels"] == certificate["labels"]
    assert plan["label"]["domain"] == certificate["label"]["domain"]
    assert plan["mechanism"]["kind"] == certificate["mechanism"]
    assert plan["auto"] == certificate["auto"]
    if certificate["prior"]["kind"] == "private":
        assert plan["prior"]["noise"]["scale"] == pytest.approx(certificate["prior"]["scale"])
        assert plan["prior"]["rows"] in (None, certificate["prior"]["rows"])
    assert artifact.write(place / "out").name == plan["writes"][0]
    assert sorted(path.name for path in (place / "out").iterdir()) == sorted(plan["writes"])


def test_no_label_is_read(place, monkeypatch):
    """The column data is garbage behind an intact footer, and no CSV file is opened."""
    expected = planned(place)
    data = bytearray((place / "visits.parquet").read_bytes())
    footer = int.from_bytes(data[-8:-4], "little") + 8
    data[4:-footer] = b"\xff" * (len(data) - footer - 4)
    (place / "visits.parquet").write_bytes(data)
    (place / "visits.csv").write_bytes(b"\xff\x00" * 100)
    monkeypatch.setattr(TableReader, "batches", None)
    assert planned(place) == expected and expected["prior"]["rows"] == ROWS
    monkeypatch.setattr(reader, "open_table", None)
    for case in ("csv", "csv given"):
        assert planned(place, **CASES[case])["label"] == expected["label"]


REFUSED = {
    "too few rows": {"epsilon": 0.01, "split": "paper"},
    "missing column": {"column": "visit"},
    "wrong type": {"column": "id"},
    "missing file": {"prior": counted("nothing.parquet")},
    "missing csv": {"prior": counted("nothing.csv"), **GIVEN},
    "no table": {"prior": counted("spec.yaml")},
    "other rows": {"prior": counted(rows=4999)},
    "infeasible outputs": {"mechanism": "{kind: optimal_unbiased, outputs: {values: [0, 9]}}"},
    "noise too fine": {"mechanism": "{kind: laplace, lattice: 0.000001}"},
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_what_compile_refuses_before_spending_is_refused_alike(place, case, monkeypatch):
    monkeypatch.setattr(obtain, "noisy_histogram", None)  # nothing may be spent here
    path = spec_in(place, **REFUSED[case])
    refusal, compiled = labeldp("plan", path), labeldp("compile", path, "-o", place / "out")
    assert refusal.exit_code == compiled.exit_code == 2, refusal.output
    assert refusal.stderr == compiled.stderr
    assert refusal.stdout == "" and refusal.stderr.count("labeldp: ") == 1
    assert not (place / "out").exists()


def test_the_noise_is_what_discrete_laplace_noise_does(place):
    noise = plan_spec(spec_in(place, **GIVEN)).budget.noise
    assert noise.scale == 8.0 and noise.average_count == ROWS / SIZE
    generator = np.random.default_rng(3)
    first, second = generator.geometric(-np.expm1(-1 / noise.scale), size=(2, 400_000))
    assert noise.deviation == pytest.approx(np.std(first - second), rel=0.01)


MECHANISMS = [
    *("randomized_response", "rr_on_bins", "{kind: rr_top_k, k: 3}", "rr_with_prior"),
    *("optimal_unbiased", "debiased_rr", "laplace", "exponential"),
    "{kind: staircase, clip: true, lattice: 0.25}",
]
KNOWN = {"prior": {"kind": "public", "weights": [2**i for i in range(10)]}}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_estimates_hold_for_the_compile_that_follows(place, mechanism):
    path = spec_in(place, mechanism=mechanism, **(KNOWN if mechanism == "rr_with_prior" else {}))
    estimated = plan_spec(path).forecast
    artifact, _ = compile_to(path, place / "build", test_seed=1)
    assert estimated.size.least / 2 <= len(artifact.model) <= estimated.size.most * 2
    assert estimated.outputs.least <= artifact.randomizer.outputs <= estimated.outputs.most
    depends = mechanism in ("rr_on_bins", "optimal_unbiased")  # on a prior that is not yet known
    assert (estimated.outputs.least < estimated.outputs.most) == depends
