"""The theory in proofs/: complete, resting on nothing, and what is shipped."""

import re
import subprocess
import tomllib

import pytest

from labeldp_compile.export.coq import modules, needed, run_coq, source
from tests.proofs.artifacts import ROOT, all_closed

PROOFS = sorted((ROOT / "proofs").glob("*.v"))
THEOREMS = re.findall(r"^Theorem (\w+)", source("Theorems"), re.M)


def test_no_file_takes_anything_for_granted():
    assert len(PROOFS) >= 10
    for path in PROOFS:
        text = path.read_text(encoding="ascii")
        found = re.search(
            r"axiom|parameter|admit|conjecture|unsafe|bypass|\bvariable\b.*:=", text, re.I
        )
        assert not found, (path.name, found[0])


def test_every_file_is_shipped_and_needs_only_those_before_it():
    names = [path.stem for path in PROOFS]
    every = needed(["Theorems"])  # for readers; nothing needs it
    assert set(names) == {*every, "Exponential"}
    for i, name in enumerate(every):
        assert set(needed([name])) <= set(every[: i + 1])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    forced = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    place = "labeldp_compile/export/coq/theory"
    theory = {source: shipped for source, shipped in forced.items() if shipped.startswith(place)}
    assert theory == {f"proofs/{name}.v": f"{place}/{name}.v" for name in names}


def test_every_theorem_rests_on_nothing(theory):
    assert len(THEOREMS) >= 10
    text = f"From LabelDP Require Import Theorems.\n{all_closed(THEOREMS)}"
    answer = run_coq(text, 1, options=["-Q", str(theory), "LabelDP"])
    assert answer.accepted, answer.why


def test_as_one_text_it_needs_nothing_but_coq(coqc):
    """As files for artifacts hold it; that of a window is in ``test_prove_command.py``."""
    text = modules(["Additives", "Epsilon"])
    assert not re.search(r"LabelDP", text)
    assert run_coq(text + "Print Assumptions Additives.additive_private_proof.\n", 1).accepted


TAKEN = "Axiom taken : forall P : Prop, P.\n"


@pytest.mark.parametrize("gap", ["", "Admitted.", "apply taken. Qed.", "Qed."])
def test_a_gap_is_seen(theory, gap):
    """Of a theorem without its proof, with one from an assumption, and with an unfinished one."""
    text, changed = re.subn(
        r"(Theorem epsilon_private_proof.*?Proof\.).*?Qed\.",
        lambda found: f"{TAKEN}{found[1]} intros. {gap}" if gap else found[0],
        source("Epsilon"),
        flags=re.S,
    )
    assert changed == 1
    text += "Print Assumptions epsilon_private_proof.\n"
    answer = run_coq(text, 1, options=["-Q", str(theory), "LabelDP"])
    assert answer.accepted is not bool(gap) and bool(answer.why) is bool(gap)


def test_partial_sums_are_below_the_exponential_function(theory):
    """The one file about real numbers rests on what the library's real numbers rest on."""
    names = re.findall(r"^Theorem (\w+)", (ROOT / "proofs/Exponential.v").read_text("ascii"), re.M)
    assert len(names) == 3
    text = (ROOT / "proofs/Exponential.v").read_text("ascii") + all_closed(names)
    folder = theory / "exponential"
    folder.mkdir()
    (folder / "Real.v").write_text(text)
    done = subprocess.run(
        ["coqc", "-q", "-Q", theory, "LabelDP", "Real.v"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(re.findall(r"^([\w.]+)", done.stdout, re.M)) == {
        "Axioms",
        "ClassicalDedekindReals.sig_forall_dec",
        "ClassicalDedekindReals.sig_not_dec",
        "FunctionalExtensionality.functional_extensionality_dep",
    }
