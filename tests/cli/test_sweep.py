"""``labeldp sweep``: numbers from certificates, ε spent once, outputs whole or not at all."""

import json
import re
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labeldp_compile.build.assembly import assemble
from labeldp_compile.prior import obtain
from labeldp_compile.prior.priors import Prior
from labeldp_compile.spec import load_spec
from labeldp_compile.sweeps.points import find_candidates
from tests.cli.test_cli import labeldp
from tests.fixtures.blank import without_rows
from tests.fixtures.specs import spec
from verifier.tests.analysed import variances

WEIGHTS = [9, 8, 7, 6, 5, 4]
ALL = [
    "randomized_response",
    "rr_with_prior",
    "rr_on_bins",
    "optimal_unbiased",
    "debiased_rr",
    "laplace",
    "laplace, clipped",
    "staircase",
    "staircase, clipped",
    "exponential",
]
UNBIASED = {"optimal_unbiased", "debiased_rr", "laplace", "staircase"}


def spec_in(place, **changes):
    usual = {"name": "visits", "column": "visits", "domain": "{kind: integer, min: 1, max: 6}"}
    text = spec(**{**usual, "weights": WEIGHTS, **changes})
    (place / "spec.yaml").write_text(text, encoding="utf-8")
    return place / "spec.yaml"


def swept(*arguments):
    result = labeldp("sweep", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


PRIVATE = {"weights": None, "prior": "{kind: private, data: visits.parquet}"}


@pytest.fixture
def table(tmp_path):
    labels = np.random.default_rng(0).integers(1, 7, 5000)
    pq.write_table(pa.table({"visits": labels}), tmp_path / "visits.parquet")
    return tmp_path


def test_every_number_is_that_of_a_certificate(tmp_path):
    path = spec_in(tmp_path)
    document = swept(path, "--epsilon", "2,0.5")
    parsed, _ = load_spec(path)
    by_title = {m.title: m for m in find_candidates(parsed, None).chosen}
    assert [p["mechanism"] for p in document["points"]] == ALL * 2
    for point in document["points"]:
        epsilon = Fraction(str(point["epsilon"]))
        prior = Prior.of({"kind": "public", "weights": WEIGHTS}, epsilon)
        named = parsed.with_mechanism(by_title[point["mechanism"]])
        artifact = assemble(named, prior, "0" * 64)
        privacy, utility = (
            artifact.certificate.to_json()["privacy"],
            artifact.certificate.to_json()["utility"],
        )
        assert point["loss"] == utility["noisy_label_loss"]
        assert point["largest_bias"] == utility["largest_bias"]
        assert point["rms_bias"] == utility["rms_bias"]
        assert point["epsilon_label_bound"] == privacy["epsilon_label_bound"] <= point["epsilon"]
        assert point["outputs"] == artifact.certificate.outputs
        assert point["bytes"] == len(artifact.model)
        assert point["seconds"] > 0
        spread = [float(v) for v in variances(artifact.randomizer)]
        assert point["variance"] == pytest.approx(np.average(spread, weights=WEIGHTS))
        assert point["unbiased"] == (point["mechanism"] in UNBIASED)
    for epsilon in (0.5, 2):
        here = [p for p in document["points"] if p["epsilon"] == epsilon]
        assert [p["mechanism"] for p in here if p["best"]] == ["optimal_unbiased"]
        assert min(here, key=lambda p: p["loss"])["mechanism"] == "rr_on_bins"
        unbiased = [p for p in here if p["unbiased"]]
        assert min(unbiased, key=lambda p: p["loss"])["mechanism"] == "optimal_unbiased"


@pytest.fixture
def unread(table):
    """The folder with a table of which no label can be read."""
    (path,) = table.glob("*.parquet")
    path.write_bytes(without_rows(path))
    return table


def test_a_private_prior_is_refused_without_being_told(unread):
    path = spec_in(unread, **PRIVATE, split="paper")
    result = labeldp("sweep", path, "-o", unread / "out.html")
    assert result.exit_code == 2 and result.stdout == ""
    assert "spends ε₁ = 0.034641" in result.stderr and "--spend-prior" in result.stderr
    assert not (unread / "out.html").exists()


def test_a_private_prior_is_estimated_once_for_all_points(table, monkeypatch):
    calls = []
    noisy = obtain.noisy_histogram
    monkeypatch.setattr(obtain, "noisy_histogram", lambda *a: calls.append(a[1]) or noisy(*a))
    path = spec_in(table, **PRIVATE, split="{prior: 0.25, label: 0.75}")
    options = ["--spend-prior", "--epsilon", "0.1,0.25,0.5,2", "--json"]
    result = labeldp("sweep", path, *options, "--mechanisms", "randomized_response,rr_on_bins")
    document = json.loads(result.stdout)
    assert calls == [Fraction(1, 4)]
    assert "spending ε₁ = 0.25 on the prior, once for all points" in result.stderr
    assert document["epsilon_prior_spent"] == 0.25
    assert {p["epsilon"]: p["epsilon_label"] for p in document["points"]} == {0.5: 0.25, 2: 1.75}
    assert len(document["points"]) == 4
    assert {p["epsilon"] for p in document["missing"]} == {0.1, 0.25}
    words = labeldp("sweep", path, *options[:-1], "--mechanisms", "randomized_response")
    said = "its ε₁ = 0.25 is spent once for all points, by each run that reads the labels"
    assert said in words.stdout and len(calls) == 2


def test_nothing_is_spent_where_no_point_could_be_compiled(unread):
    path = spec_in(unread, **PRIVATE)
    result = labeldp("sweep", path, "--spend-prior", "--epsilon", "0.01")
    assert result.exit_code == 2 and "leaves nothing for a label" in result.stderr
    result = labeldp("sweep", path, "--spend-prior", "--mechanisms", "rr_top_k:7")
    assert result.exit_code == 2 and "nothing to compare" in result.stderr


FEW = ["--epsilon", "0.5,2", "--mechanisms", "randomized_response,rr_on_bins,optimal_unbiased"]


def test_the_page(tmp_path):
    page = tmp_path / "sweep.html"
    result = labeldp("sweep", spec_in(tmp_path), *FEW, "-o", page)
    assert result.exit_code == 0, result.output
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"""(?:src|href)=["']([^#"'][^"']*)""", text)
    assert links == ["data:,"] and "<script" not in text and "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert "prefers-color-scheme: dark" in text and "@media print" in text
    assert "mathdefault" not in text  # numbers of axes are text, not formulas
    document = swept(spec_in(tmp_path), *FEW)
    for point in document["points"]:
        assert f"<td>{point['loss']:.6g}</td>" in text
        margins = dict(point["margins"])  # by rows: the picture below the tables
        assert margins.get(1_000) == point["margin_all_labels"]
        assert [*margins.values()] == sorted(margins.values(), reverse=True)
    assert 'aria-label="margin of error against number of rows"' in text
    before = page.read_bytes()
    refused = labeldp("sweep", spec_in(tmp_path), *FEW, "-o", page)
    assert refused.exit_code == 2 and "--overwrite" in refused.stderr
    assert page.read_bytes() == before


@pytest.mark.slow
def test_the_frontier_leads_from_unbiased_to_rr_on_bins(tmp_path):
    path = spec_in(tmp_path)
    document = swept(path, *FEW, "--bias-frontier")
    assert [line[0]["epsilon"] for line in document["bias_frontier"]] == [0.5, 2]
    for line in document["bias_frontier"]:
        losses = {
            p["mechanism"]: p["loss"]
            for p in document["points"]
            if p["epsilon"] == line[0]["epsilon"]
        }
        assert line[0]["loss"] == losses["optimal_unbiased"] and line[0]["unbiased"]
        assert line[-1]["loss"] == pytest.approx(losses["rr_on_bins"])
        assert all(b["loss"] <= a["loss"] * (1 + 1e-6) for a, b in pairwise(line))
        assert all(b["rms_bias"] >= a["rms_bias"] * (1 - 1e-6) - 1e-9 for a, b in pairwise(line))
    own = swept(path, "--mechanisms", "rr_on_bins", "--bias-frontier")
    assert [line[0]["epsilon"] for line in own["bias_frontier"]] == [1]
    page = tmp_path / "frontier.html"
    words = labeldp("sweep", path, *FEW, "--bias-frontier", "-o", page)
    assert "From unbiased to RR-on-Bins at ε = 0.5" in words.stdout
    assert "From unbiased to RR-on-Bins at ε = 2" in page.read_text(encoding="utf-8")
    refused = labeldp("sweep", spec_in(tmp_path, loss="absolute"), "--bias-frontier")
    assert refused.exit_code == 2 and "loss: squared" in refused.stderr
