"""Sweeps at the edges: losses below zero, empty lists, folders that refuse."""

from click.testing import CliRunner

from labeldp_compile.cli import main
from tests.helpers import INTEGER_SPEC


def test_losses_below_zero_are_drawn(tmp_path):
    text = INTEGER_SPEC.replace("min: 0, max: 9", "min: 1, max: 10").replace("squared", "poisson")
    (tmp_path / "p.yaml").write_text(text)
    result = CliRunner().invoke(
        main,
        ["sweep", str(tmp_path / "p.yaml"), "--epsilon", "1", "-o", str(tmp_path / "p.png")],
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_an_empty_list_of_epsilons_is_an_error(tmp_path):
    (tmp_path / "p.yaml").write_text(INTEGER_SPEC)
    result = CliRunner().invoke(main, ["sweep", str(tmp_path / "p.yaml"), "--epsilon", ""])
    assert result.exit_code == 2 and "--epsilon" in result.output


def test_an_unwritable_folder_is_found_before_anything_is_spent(tmp_path):
    (tmp_path / "p.yaml").write_text(INTEGER_SPEC)
    result = CliRunner().invoke(
        main, ["sweep", str(tmp_path / "p.yaml"), "-o", "/proc/self/sweep.png"]
    )
    assert result.exit_code == 2 and "cannot be written to" in result.output
