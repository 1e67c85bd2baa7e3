"""Sweeps at the edges: losses below zero, empty lists, folders that refuse."""

from click.testing import CliRunner

from labeldp_compile.cli import main
from tests.fixtures.compiled import INTEGER_SPEC


def test_losses_below_zero_are_drawn(tmp_path):
    text = INTEGER_SPEC.replace("min: 0, max: 9", "min: 1, max: 10").replace("squared", "poisson")
    (tmp_path / "p.yaml").write_text(text)
    result = CliRunner().invoke(
        main,
        ["sweep", str(tmp_path / "p.yaml"), "--epsilon", "1", "-o", str(tmp_path / "p.html")],
    )
    assert result.exit_code == 0, result.output
    assert "<svg" in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_an_empty_list_of_epsilons_is_an_error(tmp_path):
    (tmp_path / "p.yaml").write_text(INTEGER_SPEC)
    result = CliRunner().invoke(main, ["sweep", str(tmp_path / "p.yaml"), "--epsilon", ""])
    assert result.exit_code == 2 and "--epsilon" in result.output


def test_an_unwritable_folder_is_found_before_anything_is_spent(tmp_path):
    (tmp_path / "p.yaml").write_text(INTEGER_SPEC)
    result = CliRunner().invoke(
        main, ["sweep", str(tmp_path / "p.yaml"), "-o", "/proc/self/sweep.html"]
    )
    assert result.exit_code == 2 and "cannot be written to" in result.output
