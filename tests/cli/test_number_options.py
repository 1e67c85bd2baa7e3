"""Numbers of options, specs and policies: ASCII digits, and nothing else that Python would read."""

import re
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner
from labeldp_runtime import Policy
from labeldp_verify.strict import read_decimal, read_whole

from labeldp_compile.cli import main
from labeldp_compile.errors import InputError, SpecError
from labeldp_compile.spec import parse_spec
from labeldp_compile.sweeps.sweep import exact_epsilons

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "specs/doctor-visits.yaml"
FILE = next((ROOT / "tests/golden").rglob("optimal-unbiased*.onnx"))
GROUPED = next((ROOT / "tests/golden").rglob("bands.onnx"))
PYTHONS = ["1_0", "١٠", "１０", " 10", "10 ", "10\n", "1 0", "inf", "nan", "0x10", "1e", ""]
"""What ``int``, ``float``, ``Decimal`` or ``Fraction`` takes, or nearly, and people do not mean."""

TABLE = ROOT / "specs/data/randhie.parquet"
INIT = f"init {TABLE} --column mdvis --kind real --yes"
OPTIONS = f"""
sweep {SPEC} --epsilon
sweep {SPEC} --insecure-test-seed
sweep {SPEC} --target mean-error=1 --rows
sweep {SPEC} --target label-error
sweep {SPEC} --target max-belief
compile {SPEC} -o build --insecure-test-seed
ledger total {FILE} --labels-per-user 2 --delta
ledger total {FILE} --labels-per-user
ledger set-budget budget.ledger --data-set d --epsilon
audit --callable math:floor --labels 0..9 --epsilon
audit {FILE} --samples
verify {FILE} --max-epsilon
verify {FILE} --max-total-epsilon
verify {FILE} --max-epsilon-per-person
verify {FILE} --max-bias
verify {FILE} --min-outputs
report {FILE} --label
report {GROUPED} --group
{INIT} --range 0..9 --epsilon
{INIT} --range 0..9 --person-column hlthp --labels-per-person
{INIT} --range 0..9 --points
{INIT} --range
randomize {FILE} {SPEC} -o x.csv --version
"""


@pytest.mark.parametrize("line", OPTIONS.split("\n")[1:-1])
def test_options_take_no_number_of_pythons(line, here):
    """One spelling at each option; the readers below refuse all of them."""
    done = CliRunner().invoke(main, f"{line}=1_0".split())
    assert done.exit_code == 2 and "Traceback" not in done.output, done.output
    assert re.search("expected|is not listed", done.stderr), done.stderr
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("number", ["1_0", "١", "１", '"1"', ".inf", ".nan", "0x1", "1e", "1 0"])
def test_a_spec_takes_none(number):
    text = SPEC.read_text(encoding="utf-8")
    for key in (r"epsilon: 1.0", r"max: 24"):
        assert key in text
        wrong = text.replace(key, f"{key.partition(':')[0]}: {number}")
        with pytest.raises(SpecError, match=r"spec:\d+: .*(expected|should be)"):
            parse_spec(wrong)


@pytest.mark.parametrize("number", [*PYTHONS, "1/2", "1e999999999"])
def test_the_readers_take_none(number):
    for read in (read_decimal, read_whole):
        with pytest.raises(ValueError, match="expected a "):
            read(number)
    with pytest.raises(InputError, match="expected numbers"):
        exact_epsilons([number])


def test_what_people_write_is_read_exactly():
    for text in ("1", "+1", "1.", "1.0", "1e0", "10E-1"):
        assert read_decimal(text) == 1
        assert Policy(max_epsilon=text).max_epsilon == text
    assert Fraction(read_decimal(".1")) == Fraction(1, 10)
    assert read_whole("-007") == -7
    assert exact_epsilons([0.1, "0.1", Fraction(1, 10)]) == [Fraction(1, 10)]


def test_no_other_code_turns_text_into_numbers():
    own = re.compile(r"IntRange|FloatRange|type=int\b|type=float\b|click\.(INT|FLOAT)\b")
    found = [
        str(path.relative_to(ROOT))
        for package in ("labeldp_compile", "verifier", "runtime", "trainer")
        for path in (ROOT / package).rglob("*.py")
        if own.search(re.sub(r"dtype=\w+", "", path.read_text(encoding="utf-8")))
    ]
    assert found == ["labeldp_compile/cli/options.py"]
