"""What plan promises, compile keeps, for any prior: the file is no larger, and it is made."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_verify import steps
from labeldp_verify.graph import bucket_grid

from labeldp_compile import compile_spec
from labeldp_compile.build.plan import plan_spec
from labeldp_compile.errors import InputError
from labeldp_compile.ledger.book import create_ledger, read_entries, set_budget
from labeldp_compile.rounding.windows import randomized_response, rr_top_k
from tests.fixtures.specs import spec

NUMBERS = [
    *("randomized_response", "rr_on_bins", "rr_with_prior", "debiased_rr", "laplace", "staircase"),
    *("exponential", "optimal_unbiased", "optimal_unbiased", "optimal_unbiased"),
    "{kind: optimal_unbiased, bias: {max: 0.5}}",
    "{kind: optimal_unbiased, bias: {sample_size: 1}}",
    "{kind: optimal_unbiased, outputs: {grid: 40}}",
]
NAMES = ["randomized_response", "rr_with_prior", "exponential"]


def adversarial(generator, k):
    """[k] counts that make some outputs very rare, or very many of them worth having."""
    shape = generator.integers(5)
    if shape == 0:
        counts = 10.0 ** generator.uniform(0, 9, k)
    elif shape == 1:
        counts = 2.0 ** -np.arange(k) * 10**9
    elif shape == 2:
        counts = np.where(np.arange(k) % generator.integers(2, 7) == 0, 1e9, 0)
    elif shape == 3:
        counts = np.full(k, 1e6)
    else:
        y = np.arange(k) / k
        counts = 1e9 * (np.exp(-(((y - 0.2) / 0.02) ** 2)) + np.exp(-(((y - 0.8) / 0.05) ** 2)))
    return counts.astype(np.int64) + (np.arange(k) == k - 1)


def written(folder, generator):
    """A random spec, its data and its ledger."""
    k = int(generator.integers(2, 50))
    if generator.random() < 0.25:
        times = int(generator.choice([1, 30]))  # characters that take more room in JSON
        labels = ["\n\u00e9" * times + str(i) for i in range(k)]
        domain, mechanism = {"values": labels}, generator.choice(NAMES)
    else:
        low = int(generator.choice([0, 10**6]))
        labels = list(range(low, low + k))
        domain = {"domain": {"kind": "integer", "min": low, "max": low + k - 1}}
        mechanism = generator.choice(NUMBERS)
    counts, label = adversarial(generator, k), float(generator.choice(["0.1", "1", "4", "9"]))
    prior = {"kind": "private", "data": "y.parquet", "counts": "n", "rows": int(counts.sum())}
    text = spec(
        epsilon=9 + label,
        split={"prior": 9, "label": label},
        ledger="l.ledger",
        prior={**prior, "data_set": "d", "data_version": "v"},
        mechanism=mechanism,
        **domain,
    )
    pq.write_table(pa.table({"y": labels, "n": counts}), folder / "y.parquet")
    (folder / "spec.yaml").write_text(text)
    (folder / "l.ledger").unlink(missing_ok=True)
    create_ledger(folder / "l.ledger")
    set_budget(folder / "l.ledger", "d", Fraction(100), None)
    return folder / "spec.yaml"


@pytest.mark.parametrize("seed", range(2))
def test_plan_never_promises_what_compile_refuses(tmp_path, limit, seed):
    generator = np.random.default_rng(seed)
    promised = refused = 0
    names = ("COMFORTABLE_ENTRIES", "SINGLE_GRID_ENTRIES", "MAX_ENTRIES")
    shipped, most_bytes = [getattr(bucket_grid, name) for name in names], steps.MAX_FILE_BYTES
    for _ in range(10):
        path = written(tmp_path, generator)
        entries, file_bytes = shipped, most_bytes
        if generator.random() < 0.7:  # limits that bite at these few labels
            comfortable = int(generator.choice([64, 256, 1024]))
            entries = [comfortable, 16, 4 * comfortable]
            file_bytes = int(generator.integers(46_000, 130_000))
        for name, number in zip(names, entries, strict=True):
            limit(bucket_grid, name, number)
        limit(steps, "MAX_FILE_BYTES", file_bytes)
        try:
            most = plan_spec(path).most_bytes
        except InputError as error:
            refused += 1
            with pytest.raises(InputError) as same:
                compile_spec(path, directory=tmp_path / "out")
            assert str(same.value) == str(error)
            kinds = [entry.kind for entry in read_entries(tmp_path / "l.ledger")]
            assert kinds == ["ledger", "budget"]
            continue
        promised += 1
        artifact = compile_spec(path, directory=tmp_path / "out")
        assert len(artifact.model) <= most <= steps.MAX_FILE_BYTES
    assert promised >= 3 and refused >= 1


@pytest.mark.parametrize("epsilon", ["0.000001", "0.01", "0.7", "0.6931471805599453", "3", "20"])
def test_grids_of_responses_have_no_more_entries_than_promised(epsilon):
    sizes_tried = sorted({*range(1, 40), 127, 128, 129, 255, 256, 500, 511, 512, 1000})
    for m in sizes_tried:
        response = randomized_response(range(m), range(m), Fraction(epsilon))
        top = rr_top_k(range(m + 1), range(m), Fraction(epsilon))
        for randomizer, each, segments in ((response, 10, 2), (top, 36, 3)):
            entries = max(each * m + 64, bucket_grid.SINGLE_GRID_ENTRIES)
            k = len(randomizer.offsets)
            assert bucket_grid.table_bytes(randomizer) <= 8 * (k + entries + segments * m)


def spec_of(folder, loss, mechanism):
    path = folder / "s.yaml"
    path.write_text(spec(domain="{kind: integer, min: 1, max: 40}", loss=loss, mechanism=mechanism))
    return path


def test_rare_outputs_are_merged_until_the_tables_fit(tmp_path, limit):
    path = spec_of(tmp_path, "squared", "optimal_unbiased")
    best = compile_spec(path)
    limit(bucket_grid, "SINGLE_GRID_ENTRIES", 16)
    limit(bucket_grid, "COMFORTABLE_ENTRIES", 256)
    fitting = compile_spec(path)
    assert fitting.randomizer.outputs < best.randomizer.outputs
    entries = bucket_grid.table_bytes(fitting.randomizer) // 8
    assert entries <= 40 + 256 + 2 * fitting.randomizer.outputs
    # What that costs is in the certificate: still unbiased, and the gap is proved.
    utility, least = fitting.certificate.to_json()["utility"], best.certificate.to_json()["utility"]
    assert utility["largest_bias"] < 1e-12 and 0 < utility["certified_gap"] < 0.05
    assert utility["noisy_label_loss"] < 1.05 * least["noisy_label_loss"]
