"""The verifier and the runtime stand alone: what they import, and what they must not."""

import subprocess
import sys

FORBIDDEN_IN_VERIFIER = {
    "labeldp_compile.solve",
    "labeldp_compile.prior",
    "labeldp_compile.mechanisms",
    "labeldp_compile.spec",
    "labeldp_compile.certificate",
    "labeldp_compile.pipeline",
    "labeldp_compile.randomizer.randomized_response",
    "labeldp_compile.randomizer.privacy",
    "labeldp_compile.randomizer.window_privacy",
    "labeldp_compile.randomizer.additive_privacy",
    "labeldp_compile.randomizer.utility",
    "labeldp_compile.randomizer.window_utility",
    "labeldp_compile.randomizer.additive_utility",
    "labeldp_compile.randomizer.table_utility",
    "labeldp_compile.randomizer.output_rounding",
    "labeldp_compile.randomizer.noise_sums",
    "labeldp_compile.randomizer.table_privacy",
    "labeldp_compile.randomizer.additive_noise",
    "labeldp_compile.randomizer.block_weights",
    "labeldp_compile.randomizer.rounded_shape",
    "labeldp_compile.randomizer.rr_top_k",
    "labeldp_compile.randomizer.whole_counts",
    "labeldp_compile.randomizer.exp_bound",
    "scipy",
    "opendp",
    "mpmath",
    "pyarrow",
    "pydantic",
}


def modules_after(statement):
    code = f"{statement}; import sys; print('\\n'.join(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


def test_the_verifier_imports_no_solver_no_prior_and_no_rounding():
    assert not modules_after("import labeldp_compile.verify") & FORBIDDEN_IN_VERIFIER


def test_the_runtime_needs_numpy_and_onnxruntime_only():
    loaded = {name.split(".")[0] for name in modules_after("import labeldp_runtime")}
    assert not loaded & {
        "labeldp_compile",
        "onnx",
        "pyarrow",
        "pandas",
        "scipy",
        "opendp",
        "pydantic",
        "click",
        "yaml",
    }
