"""Everything that is wrong with a spec is said at once, each with its line and a caret."""

import pytest
from labeldp_trainer import ConfigError, parse_config

from labeldp_compile import yaml_model
from labeldp_compile.errors import SpecError
from labeldp_compile.spec import parse_spec
from trainer.tests.trainer_helpers import CONFIG

BAD = """version: 1
name: "doctor visits"
label:
  column: mdvis
  domain: {kind: integer, mn: 0, max: 77}
loss: sqared
privacy:
  epsilon: 1.0
prior: {kind: private, data: x.parquet}
mechanism: {kind: rr_on_bins}
"""


def error_of(text, parse=parse_spec, kind=SpecError):
    with pytest.raises(kind) as caught:
        parse(text, "s.yaml")
    return [str(caught.value), *getattr(caught.value, "__notes__", ())], caught.value


def messages(text, **how):
    lines, _ = error_of(text, **how)
    return [line.removeprefix("labeldp: ") for line in lines if line.startswith(("s.", "labeldp"))]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("name: 'x y'\t# \u202e", "     2 | name: 'x y' # \ufffd"),
        ("name: [\x1b]", "     2 | name: [\ufffd]"),
        ('name: "\u200b y"', '     2 | name: "\ufffd y"'),
    ],
)
def test_what_is_shown_of_the_text_obeys_no_terminal(line, shown):
    lines, _ = error_of(f"version: 1\n{line}\n")
    assert shown in lines
    assert all(c.isprintable() for text in lines for c in text)


def test_a_caret_stands_under_its_key_where_characters_are_wide():
    lines, _ = error_of("version: 1\nlabel: {漢字: 1}\nloss: x\n")
    assert any(line == "     2 | label: {漢字: 1}" for line in lines)
    at = next(i for i, line in enumerate(lines) if "unknown key" in line and "漢字" in line)
    assert lines[at + 2] == " " * (len("     2 | label: {")) + "^"
    lines, _ = error_of("version: 1\nlabel: {a: 漢字, b: 1}\n")
    at = next(i for i, line in enumerate(lines) if "label.b" in line)
    assert lines[at + 2] == " " * (len("     2 | label: {a: , ") + 4) + "^"


def test_a_file_of_errors_is_cut(monkeypatch):
    """And near names, which take their time, are looked for only where they are shown."""
    looked_for, meant = [], yaml_model._meant
    monkeypatch.setattr(yaml_model, "_meant", lambda *a: (looked_for.append(a), meant(*a))[1])
    lines, _ = error_of("".join(f"key{i}: 1\n" for i in range(3000)))
    assert len(lines) < 80 and lines[-1].endswith(": 3,007 errors, of which 20 are shown")
    assert 0 < len(looked_for) <= 40


def test_a_file_of_another_kind_is_one_error():
    expected = "s.yaml: expected a spec, and this is a training config; labeldp train reads it"
    assert messages(CONFIG) == [expected]
    expected = "s.yaml: expected a config, and this is a spec; labeldp plan and compile read it"
    assert messages(BAD, parse=parse_config, kind=ConfigError) == [expected]
    assert len(messages(BAD.replace("mechanism:", "method:"))) > 1  # a misspelled key is no kind
