"""A loss is at most (1 + gap) times the least: in every command, and if the gap is wide."""

import re
from fractions import Fraction

import pytest
from click.testing import CliRunner
from labeldp_verify import check_file
from labeldp_verify.claims import near_least
from labeldp_verify.claims.utility import bound_facts

from labeldp_compile.cli import main
from tests.fixtures.compiled import integer_spec, public


def test_a_gap_is_relative_to_the_bound_and_rounded_up():
    assert near_least(0.0) == "the least possible"
    assert near_least(1e-9) == "at most (1 + 1.1e-09) times the least possible"
    assert near_least(110.2) == "at most 112 times the least possible"
    assert near_least(None) == "above a lower bound of 0"
    for bound, loss, gap in ((Fraction(1, 3), Fraction(1), 2.0), (Fraction(0), Fraction(0), 0.0)):
        assert bound_facts(bound, loss)["utility.certified_gap"] == gap
    for bound in (None, Fraction(0)):
        assert bound_facts(bound, Fraction(1))["utility.certified_gap"] is None


@pytest.mark.parametrize("k", [1, 3])
def test_every_command_prints_a_factor_that_holds(k, tmp_path):
    """Of a k that is not the best: the loss is several times the least."""
    weights = public([40, 30, 20, 8, 2])
    mechanism = f"{{kind: rr_top_k, k: {k}}}"
    spec, page = tmp_path / "wide.yaml", tmp_path / "report.html"
    text = integer_spec(5, mechanism, epsilon=5, loss="zero_one", prior=weights, name="wide")
    spec.write_text(text)
    shown = {}
    for name, arguments in {
        "compile": ["compile", spec, "-o", tmp_path],
        "compile -v": ["compile", spec, "-o", tmp_path, "-v", "--overwrite"],
        "verify": ["verify", tmp_path / "wide.onnx"],
        "verify -v": ["verify", tmp_path / "wide.onnx", "-v"],
        "report": ["report", tmp_path / "wide.onnx", "-o", page],
    }.items():
        result = CliRunner().invoke(main, [str(one) for one in arguments])
        assert result.exit_code == 0, result.output
        shown[name] = result.output + (page.read_text(encoding="utf-8") if page.exists() else "")
    stated = check_file(tmp_path / "wide.onnx").require().certificate.utility
    factor = stated.noisy_label_loss / stated.loss_lower_bound
    assert factor > 2
    for name, text in shown.items():
        times = [float(one) for one in re.findall(r"at most ([\d.]+) times\s+the least", text)]
        assert times, name
        assert all(factor <= one <= factor * 1.01 for one in times), (name, factor, times)
        assert "within 0." not in text
