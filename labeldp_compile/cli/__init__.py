"""The command ``labeldp``.

Exit codes: 0 done; 1 the thing checked does not hold; 2 the input or the usage is wrong; 130
interrupted.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labeldp_compile.cli.group import main as main

# The short helps are here so that the list of commands imports none of them. A test compares them
# with the commands' own docstrings.
_COMMANDS = {
    "demo": "Take a guided tour on sample data, in about a minute.",
    "init": "Write a commented spec for a column of TABLE.",
    "plan": "Preview compile with SPEC: the ε that it spends, the randomizer and the files.",
    "sweep": "Compare all mechanisms for the label, loss and prior of SPEC.",
    "compile": "Compile SPEC into a randomizer with a certificate.",
    "verify": "Check every provable claim of an artifact from FILE alone.",
    "diff": "Show how two artifacts or two specs differ, and which changes break a promise.",
    "check": "Check artifacts, training runs and ledgers against a policy.",
    "audit": "Randomize made-up labels, and test the outputs against the claims of FILE.",
    "randomize": "Randomize the labels of TABLE with ARTIFACT, which is verified first.",
    "export": "Write an artifact for another host or tool, or a trained model as ONNX.",
    "serve": "Serve ARTIFACTS over HTTP: a caller sends true labels and gets private ones.",
    "estimate": "Estimate mean, histogram and quantiles of the true labels behind private ones.",
    "evaluate": "Estimate how good models are, from private labels that they were not trained on.",
    "train": "Train a JAX model on private labels (needs labeldp-trainer).",
    "runs": "Compare training runs: ε, δ, metric, baselines (needs labeldp-trainer).",
    "predict": "Add the predictions of a trained model to TABLE (needs labeldp-trainer).",
    "explain": "Show the effects in a model of interactions (needs labeldp-trainer).",
    "keygen": "Write a new random key to FILE, for labeldp randomize --key.",
    "report": "Show how the artifact FILE changes labels, or write a page for people who decide.",
    "ledger": "Track privacy budgets per data set.",
    "schema": "Print the JSON Schema (draft 7) of a spec, or of another file in YAML.",
}

_HEADINGS = {
    "Start": ("demo", "init", "plan", "sweep"),
    "Make": ("compile", "verify", "randomize", "export", "serve"),
    "Use": ("estimate", "evaluate"),
    "Train": ("train", "runs", "predict", "explain", "audit"),
    "Govern": ("check", "diff", "report", "ledger", "keygen", "schema"),
}
"""The commands under the headings of ``labeldp --help``."""


def __getattr__(name: str) -> object:
    """The command itself, loaded on use: until then, ^C has nothing to interrupt."""
    if name != "main":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from labeldp_compile.cli.group import main  # noqa: PLC0415

    return main
