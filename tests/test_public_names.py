"""The public names of the compiler: one list, and each is loaded when it is used."""

import subprocess
import sys
from importlib import import_module

import pytest

import labeldp_compile


def test_each_is_there_and_is_listed_once():
    names = labeldp_compile.__all__
    assert {"compile_spec", "SpecError", "VerificationError", "Sweep"} <= set(names)
    assert len(set(names)) == len(names) and not any(name.startswith("_") for name in names)
    for name in names:
        assert getattr(labeldp_compile, name).__name__ == name
    star: dict[str, object] = {}
    exec("from labeldp_compile import *", star)
    assert set(names) <= set(star)


@pytest.mark.parametrize("face", ["labeldp_learn", "labeldp_runtime", "labeldp_verify"])
def test_each_name_of_the_other_faces_is_there(face):
    names = import_module(face).__all__
    assert len(set(names)) == len(names) and not any(name.startswith("_") for name in names)
    for name in names:
        getattr(import_module(face), name)


def test_modules_behind_the_names_are_no_public_names():
    assert import_module("labeldp_compile.api").compile_spec is labeldp_compile.compile_spec
    for name in ("Path", "import_module", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"'labeldp_compile' has no attribute '{name}'"):
            getattr(labeldp_compile, name)


def test_a_name_loads_its_own_module_alone():
    script = "import sys; from labeldp_compile import SpecError, compile_spec; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "labeldp_compile.errors" in loaded
    assert not {"numpy", "onnx", "pydantic", "labeldp_compile.spec"} & loaded
