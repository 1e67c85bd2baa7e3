"""A table whose labels were hardly read is doubted: by its form, and by the noisy prior alone."""

import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main
from labeldp_compile.prior.obtain import prior_doubts
from labeldp_compile.prior.priors import Prior, TablePrior
from labeldp_compile.spec import parse_spec
from tests.fixtures.specs import spec

SPEC = spec(
    domain="{kind: real, min: 0, max: 100, points: 101}",
    out_of_domain="{default: 0}",
    epsilon=4,
    split="{prior: 1, label: 3}",
    prior='{kind: private, data: t.csv, rows: 3000, delimiter: ";"}',
)


def said(tmp_path, command, mark):
    rows = "".join(f"{i};{i % 90}{mark}{i % 97:02}\n" for i in range(3000))
    (tmp_path / "t.csv").write_text("x;y\n" + rows)
    (tmp_path / "s.yaml").write_text(SPEC)
    output = ["-o", str(tmp_path / f"out{mark}")] if command == "compile" else []
    result = CliRunner().invoke(main, [command, str(tmp_path / "s.yaml"), *output])
    assert result.exit_code == 0, result.output
    return result.output


def test_decimal_commas_are_doubted(tmp_path):
    """The delimiter says so before ε is spent, and the noisy prior afterwards."""
    early, late = "numbers such as 51,62", "% of the noisy prior is at 0"
    assert early in said(tmp_path, "plan", ",")
    output = said(tmp_path, "compile", ",")
    assert early in output and late in output
    assert late not in said(tmp_path, "compile", ".")


WEIGHTS = {"91 of 100": ([91, *[0] * 3, 9], 1), "89 of 100": ([89, *[0] * 3, 11], 0)}
WEIGHTS |= {"elsewhere": ([0, 0, 100, 0, 0], 0), "even": ([20] * 5, 0)}
WEIGHTS |= {"a cell of two labels": ([46, 46, 4, 4, 0], 1)}


@pytest.mark.parametrize("name", WEIGHTS)
def test_only_public_weights_decide(tmp_path, name):
    weights, count = WEIGHTS[name]
    stated = SPEC.replace("real, min: 0, max: 100, points: 101", "integer, min: 0, max: 4")
    prior = Prior(1, 3, [TablePrior({"weights": weights})])
    assert len(prior_doubts(parse_spec(stated), prior, tmp_path)) == count
