"""The command ``labeldp``.

Exit codes: 0 done; 1 the thing checked does not hold; 2 the input or the usage is wrong; 130 it was
interrupted.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labeldp_compile.cli.group import main as main

# The short helps stand here so that a list of the commands imports none of them; a test holds them
# against the commands' own.
_COMMANDS = {
    "init": "Write a commented spec for a column of TABLE.",
    "plan": "Say what compile would do with SPEC: what it spends, solves and writes.",
    "sweep": "Compare all mechanisms for the label, loss and prior of SPEC.",
    "choose": "Find the least ε, and the mechanism, that make private labels good enough.",
    "compile": "Compile SPEC into a randomizer with a certificate.",
    "verify": "Check every provable claim of an artifact from FILE alone.",
    "prove": "Write the integers of the artifact FILE, and a proof that they are private, for Coq.",
    "audit": "Randomize made-up labels, and test the outputs against what FILE certifies.",
    "randomize": "Randomize the labels of TABLE with ARTIFACT, which is verified first.",
    "estimate": "Estimate histogram, mean and quantiles of what is behind private labels.",
    "train": "Train a JAX model on private labels (needs labeldp-trainer).",
    "runs": "Compare training runs: ε, δ, metric, baselines (needs labeldp-trainer).",
    "predict": "Add what a trained model predicts to TABLE (needs labeldp-trainer).",
    "export": "Write a trained model as ONNX, with its statement (needs labeldp-trainer).",
    "keygen": "Write a new random key to FILE, for labeldp randomize --key.",
    "inspect": "Show the matrix Pr[output | label] of an artifact, its outputs and its labels.",
    "report": "Show what the artifact FILE does and promises, on one page for people.",
    "compose": "Say what one user pays whose labels go through all FILEs.",
    "ledger": "Keep the budget of data sets: a private prior is paid before a label is read.",
    "schema": "Print the JSON Schema (draft 7) of the spec, or of a training config.",
    "completion": "Print a script that completes commands, options and files in SHELL.",
}


def __getattr__(name: str) -> object:
    """The command itself, loaded when it is used: until then ^C has nothing to interrupt."""
    if name != "main":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from labeldp_compile.cli.group import main  # noqa: PLC0415

    return main
