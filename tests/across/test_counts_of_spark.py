"""The counts of ``engines.spark.write_label_counts`` become a private prior."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from labeldp_verify import check_bytes

from labeldp_compile.build.pipeline import compile_spec

SPEC = """
version: 1
name: visits
label: {column: y, domain: {kind: integer, min: 0, max: 9}}
loss: squared
privacy: {epsilon: 1.0}
prior: {kind: private, data: counts.parquet, counts: n, rows: 300000}
mechanism: {kind: rr_on_bins}
"""


def test_counts_of_a_cluster_become_a_prior_that_verifies(tmp_path):
    counted = {0: 60_000, 1: 60_000, 2: 60_000, 3: 60_000, 99: 30_000, None: 30_000}
    table = pa.table({"y": list(counted), "n": list(counted.values())})
    pq.write_table(table, tmp_path / "counts.parquet")
    (tmp_path / "spec.yaml").write_text(SPEC)
    artifact = compile_spec(tmp_path / "spec.yaml")
    prior = artifact.certificate.to_json()["prior"]
    assert prior["rows"] == 300_000
    # Nulls and 99 are clamped to 0 and 9; the noise has the scale 346 on each count.
    share = np.array(prior["weights"]) / sum(prior["weights"])
    expected = np.array([900, 600, 600, 600, 0, 0, 0, 0, 0, 300]) / 3000
    assert np.abs(share - expected).max() < 30 * 2 / math.sqrt(10 / 300_000) / 300_000
    check_bytes(artifact.model).require()
