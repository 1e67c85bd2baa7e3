"""Numbers of options, specs and policies: ASCII digits, and nothing else that Python would read."""

import re
from fractions import Fraction
from pathlib import Path

import pytest
from labeldp_runtime import Policy
from labeldp_verify.strict import read_decimal, read_whole

from labeldp_compile.errors import InputError, SpecError
from labeldp_compile.spec import parse_spec
from labeldp_compile.sweeps.sweep import exact_epsilons

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "specs/doctor-visits.yaml"
PYTHONS = ["1_0", "١٠", "１０", " 10", "10 ", "10\n", "1 0", "inf", "nan", "0x10", "1e", ""]
"""What ``int``, ``float``, ``Decimal`` or ``Fraction`` takes, or nearly, and people do not mean."""


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
