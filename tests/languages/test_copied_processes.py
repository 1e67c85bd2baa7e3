"""C++ and Node never draw what a copy of the process draws, though it has the same process id."""

import os
from pathlib import Path

import pytest

from runtime.tests.copied_process import ASK, COPIES
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.languages import harness

HERE = Path(__file__).parent


@pytest.fixture(scope="module", params=["cpp", "node"])
def command(request):
    reason = harness.missing(request.param)
    if reason and os.environ.get("LABELDP_ALL"):
        pytest.fail(f"{reason}: see build/languages/install.log")
    if reason:
        pytest.skip(f"{reason}: run tests/languages/install")
    if request.param == "cpp":
        return [harness.build(HERE / "copied.cc")]
    return ["node", "--single-threaded", str(HERE / "copied.mjs")]


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("rows", [64, 20_000])  # the kernel's own words, and a stream of AES
def test_private_labels_of_a_copy(copying_process, command, copy, rows, tmp_path):
    path = tmp_path / "x.onnx"
    path.write_bytes(compile_text(INTEGER_SPEC).model)
    one, other = copying_process(copy, [*command, str(path), str(rows), ASK])
    assert len({*one.split(), *other.split()}) == 4
