"""Verify one altered artifact, and say whether its passing would be a false one."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import onnx
from labeldp_runtime import Randomizer, RuntimeArtifactError
from mpmath import mp, mpf

from tests.fuzz.artifact_cases import AlteredFile
from tests.fuzz.guard import FoundError, HangError, labeldp, limited


def try_artifact(case: AlteredFile, folder: Path) -> str:
    """What became of an altered artifact: same, failed, or restated.

    ``same``: the alteration changed nothing. ``restated``: it verifies, and differs from the
    original in nothing but declared fields of the certificate (and so in the checksum): the graph,
    its constants, the self-test and every proved field are the same, and the ε that it declares is
    no less than the ratio allows. Any other file that passes is a false pass.

    Raises FoundError for a false pass, a traceback, a hang, or more than one message.
    """
    data, altered = case.data, case.altered
    if altered == data:
        return "same"
    path = folder / "altered.onnx"
    path.write_bytes(altered)
    result = labeldp("verify", path, codes=(0, 1))
    lines = result.stdout.splitlines()
    if result.exit_code == 1:
        failed = [line for line in lines if line.startswith("FAILED")]
        if len(failed) != 1 or result.stderr or not lines[-1].endswith("Do not use this file."):
            raise FoundError(f"not one reason: {result.output}")
        if len(altered) % 8 == 0:
            labeldp("report", path, codes=(1,))
        _try_to_load(altered)
        return "failed"
    wrong = _false(data, altered)
    if wrong:
        raise FoundError(f"a false pass: {wrong}")
    return "restated"


def _try_to_load(altered: bytes) -> None:
    """The runtime refuses the file with an error of its own, or loads it; nothing else."""
    try:
        with limited():
            Randomizer(altered, "altered")
    except RuntimeArtifactError:
        return
    except HangError as error:
        raise FoundError(f"the runtime: {error}") from None
    except Exception as error:
        raise FoundError(f"the runtime: {error!r}") from error


def _false(data: bytes, altered: bytes) -> str | None:
    """In what the files differ, beyond declared fields; None if in nothing."""
    models = [onnx.load_from_string(part) for part in (data, altered)]
    metadata = [{p.key: p.value for p in model.metadata_props} for model in models]
    before, after = (json.loads(part["labeldp.certificate"]) for part in metadata)
    users = "composition" in before
    if users != ("composition" in after):
        return "composition"
    for field in before["fields"]["proved"]:
        if _value(before, field) != _value(after, field):
            return field
    for key in metadata[0]:
        may_differ = key in ("labeldp.certificate", "labeldp.content_sha256")
        if not may_differ and metadata[0][key] != metadata[1].get(key):
            return key
    for model in models:
        del model.metadata_props[:]
    if models[0].SerializeToString() != models[1].SerializeToString():
        return "the graph"
    ratio = Fraction(after["exact"]["realised_ratio"])
    epsilon = Fraction(after["exact"]["epsilon_label"])
    with mp.workdps(60):
        largest = mp.exp(mpf(epsilon.numerator) / epsilon.denominator)
        if mpf(ratio.numerator) / ratio.denominator > largest:
            return "privacy.epsilon_label is too small"
    return None


def _value(certificate: dict[str, Any], field: str) -> Any:
    value: Any = certificate
    for key in field.split("."):
        value = value[key]
    if field == "optimality" and value is not None:  # decimals may be written in several ways
        numbers = {key: [Fraction(text) for text in value[key]] for key in ("alpha", "beta")}
        return {**value, **numbers, "amount": Fraction(value["amount"])}
    return value
