"""The kernel refuses an altered file, or its bound holds for what onnxruntime computes."""

from collections import Counter

import pytest
from labeldp_verify import kernel

from verifier.tests.kernel.alterations import KINDS, altered, seeded
from verifier.tests.kernel.enumerated import opened, real_ratio
from verifier.tests.kernel.judged import judged
from verifier.tests.kernel.small_files import small_files

FILES = dict(small_files())
CASES = 6  # of each kind and file here; benchmarks/kernel_fuzz.py has more


@pytest.mark.parametrize("name", list(FILES)[::3])
def test_small_files_keep_to_their_bound(name):
    integers = kernel.integers_of(FILES[name])
    bits = max(table.bits for table in integers.tables)
    words = 2 if isinstance(integers.tables[0], kernel.Noise) else 1
    real = real_ratio(opened(FILES[name]), bits, words, seeded(name))
    assert 1 < real <= integers.ratio()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "bytes"])
def test_an_altered_file_is_refused_or_private(kind):
    found = Counter()
    for name, data in FILES.items():
        if name.startswith("additive") and kind not in ("constant", "wire"):
            continue  # which takes long to run
        for case in range(CASES if kind in ("constant", "wire", "bytes") else 2):
            rng = seeded(kind, name, case)
            changed = altered(data, kind, rng)
            if changed != data:
                verdict = judged(changed, rng)
                assert not verdict.startswith("WRONG"), (name, case)
                found[verdict] += 1
    assert found["refused"] > 0
