"""``labeldp ledger total`` as a user sees it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main
from tests.fixtures.compiled import INTEGER_SPEC, compile_text


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("build")
    text = INTEGER_SPEC.replace("name: example", "name: other").replace("1.0", "0.25")
    paths = [compile_text(t).write(folder) for t in (INTEGER_SPEC, text)]
    return [str(path) for path in paths]


def run(*arguments):
    return CliRunner().invoke(main, ["ledger", "total", *arguments])


def test_labels_of_several_files(files):
    result = run(files[0], f"{files[1]}:40", "--labels-per-user", "2", "--delta", "1e-8", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert [item["labels_per_user"] for item in document["files"]] == [2, 40]
    assert document["labels_per_user"] == 42
    assert document["exact"]["epsilon_pure"] == "12"  # 2 · 1 + 40 · 1/4
    assert document["smaller_with_delta"] and 8 < document["epsilon_at_delta"] < 12
    words = run(files[0], f"{files[1]}:40", "--labels-per-user", "2").stdout
    assert "A user with 42 labels spends ε = 12 in total:" in words and "δ = 1e-06" in words


def test_the_number_of_labels_that_a_certificate_states(files, tmp_path):
    text = INTEGER_SPEC.replace("epsilon: 1.0", "epsilon: 1.0, labels_per_user: 7")
    if text == INTEGER_SPEC:
        text = INTEGER_SPEC.replace("privacy:", "privacy:\n  labels_per_user: 7")
    path = compile_text(text).write(tmp_path)
    for arguments, expected in (
        ([str(path), f"{files[1]}:2"], [7, 2]),
        ([f"{path}:3", f"{files[1]}:2"], [3, 2]),
        ([str(path), files[1], "--labels-per-user", "4"], [4, 4]),
    ):
        document = json.loads(run(*arguments, "--json").stdout)
        assert [item["labels_per_user"] for item in document["files"]] == expected
    assert "its certificate states no labels_per_user" in run(str(path), files[1]).stderr


def test_a_file_that_does_not_verify(files, tmp_path):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(Path(files[0]).read_bytes() + b"x")
    result = run(files[1], str(broken), "--labels-per-user", "2")
    assert result.exit_code == 1 and "does not verify" in result.stderr and not result.stdout
