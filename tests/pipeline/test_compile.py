"""The pipeline: what it writes, when it refuses, and that nothing is left half-written."""

import json

import pytest
from labeldp_verify import check_file

from labeldp_compile import compile_spec
from labeldp_compile.build.assembly import Compiled
from labeldp_compile.spec import agreement
from tests.fixtures.compiled import INTEGER_SPEC, compile_text


def write_spec(tmp_path, text=INTEGER_SPEC):
    path = tmp_path / "example.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_certificate_lies_in_the_file_and_beside_it(tmp_path):
    artifact = compile_spec(write_spec(tmp_path))
    onnx_path = artifact.write(tmp_path / "new" / "build")
    beside = json.loads((onnx_path.parent / "example.certificate.json").read_text())
    assert artifact.certificate == check_file(onnx_path).certificate
    assert beside == artifact.certificate.to_json()
    assert sorted(p.name for p in onnx_path.parent.iterdir()) == [
        "example.certificate.json",
        "example.onnx",
    ]
    assert agreement.check_file(onnx_path, tmp_path / "example.yaml").ok


def test_a_failed_write_leaves_nothing(tmp_path):
    made = compile_text(INTEGER_SPEC)
    broken = Compiled("not bytes", made.artifact)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        broken.write(tmp_path / "build")
    assert not list((tmp_path / "build").iterdir())
