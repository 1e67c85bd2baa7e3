"""Who is responsible for a file and approved it: a signed statement beside the file.

An in-toto Statement in a DSSE envelope (JSON). Its subject is the file by its SHA-256: an artifact,
or of a training run ``privacy.json``, and ``run.json`` with the digests of config and features. So
another file is not approved by it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from labeldp_verify.errors import read_at_most
from labeldp_verify.printable import clipped, one_line
from labeldp_verify.strict import parse_json

from labeldp_compile.check.verdicts import require_plain
from labeldp_compile.errors import InputError

if TYPE_CHECKING:
    from labeldp_verify.signature import PublicKey

    from labeldp_compile.signing import PrivateKey

PREDICATE_TYPE = "urn:labeldp:approval:1"
MOST_BYTES = 1 << 16
MOST_TEXT = 500
APPROVED_OF_RUN = ("privacy.json", "run.json")


@dataclass(frozen=True)
class Responsible:
    """The statement of the person who approves a file; texts have at most ``MOST_TEXT`` characters.

    ``policy`` names the policy that the file met, with its SHA-256 behind it; None if none was
    applied. ``approved_on`` is a day such as 2026-01-31.
    """

    purpose: str
    owner: str
    recipients: str
    retention: str
    approved_by: str
    approved_on: str
    policy: str | None = None


@dataclass(frozen=True)
class Approval:
    """A statement that is about the file in question.

    ``signer`` is the SHA-256 (hex) of the key with which its signature was checked; None if it was
    not checked.
    """

    stated: Responsible
    signer: str | None

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The statement's fields, in the order in which people ask."""
        names = {
            "purpose": "Purpose",
            "owner": "Owner",
            "recipients": "Recipients",
            "retention": "Retention",
            "approved_by": "Approved by",
            "approved_on": "Approved on",
            "policy": "Under the policy",
        }
        stated = asdict(self.stated)
        return [(title, stated[key]) for key, title in names.items() if stated[key] is not None]


def approval_path(of: Path) -> Path:
    """Where the statement lies: NAME.onnx.approval.json, or approval.json in a run folder."""
    return of / "approval.json" if of.is_dir() else of.with_name(of.name + ".approval.json")


def subjects_of(of: Path) -> list[Path]:
    """The files whose digests are approved; of a run its statement first."""
    return [of / name for name in APPROVED_OF_RUN] if of.is_dir() else [of]


def read_subjects(of: Path) -> list[bytes]:
    """The bytes that are approved. Raises InputError."""
    from labeldp_verify import read_artifact  # noqa: PLC0415

    paths = subjects_of(of)
    for path in paths:
        require_plain(path)
    return [read_artifact(path) for path in paths]


def approval(stated: Responsible, of: Path, data: list[bytes], key: PrivateKey) -> bytes:
    """The signed statement about the bytes of ``subjects_of(of)``."""
    from labeldp_verify.signature import STATEMENT_TYPE  # noqa: PLC0415  # cryptography

    from labeldp_compile.signing import signed_envelope  # noqa: PLC0415

    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": one_line(path.name), "digest": {"sha256": sha256}}
            for path, sha256 in zip(subjects_of(of), _digests(data), strict=True)
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": asdict(stated),
    }
    return (json.dumps(signed_envelope(statement, key), ensure_ascii=False) + "\n").encode()


def read_approval(path: Path, data: list[bytes], key: PublicKey | None) -> Approval:
    """The statement in a file, about these bytes; its signature is checked if there is a key.

    Raises InputError if it is no such statement, is about other bytes, or is not signed by the key.
    """
    payload, signature = _opened(path, read_at_most(path, MOST_BYTES + 1))
    stated = _stated(path, payload, _digests(data))
    if key is None:
        return Approval(stated, None)
    from labeldp_verify.signature import Signed  # noqa: PLC0415  # cryptography

    signed = Signed(signature, key)
    if not signed.holds_in_envelope(payload):
        raise InputError(f"{path}: the key did not sign this approval")
    return Approval(stated, signed.fingerprint())


def approval_beside(
    path: Path, data: list[bytes], given: Path | None, approver: PublicKey | None
) -> Approval | None:
    """The approval that was named, or the one beside the file, if there is one. Raises InputError.

    An approval with a key to check must be there.
    """
    beside = approval_path(path)
    if given is None and approver is None and not beside.exists():
        return None
    if given is None:
        require_plain(beside)
    return read_approval(given or beside, data, approver)


def _opened(path: Path, text: bytes) -> tuple[bytes, bytes]:
    """The payload of an envelope, and its only signature."""
    try:
        envelope = parse_json(text.decode())
        (signature,) = envelope["signatures"]
        payload = base64.b64decode(envelope["payload"], validate=True)
        return payload, base64.b64decode(signature["sig"], validate=True)
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: is no approval of labeldp report --approve") from None


def _digests(data: list[bytes]) -> list[str]:
    return [hashlib.sha256(one).hexdigest() for one in data]


def _stated(path: Path, payload: bytes, digests: list[str]) -> Responsible:
    try:
        statement = parse_json(payload.decode())
        stated = vars(Responsible(**statement["predicate"]))
        texts = {name: value for name, value in stated.items() if (name, value) != ("policy", None)}
        fits = statement["predicateType"] == PREDICATE_TYPE
        if not fits or not all(isinstance(value, str) for value in texts.values()):
            raise ValueError
        about = [subject["digest"]["sha256"] for subject in statement["subject"]]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: is no approval of labeldp report --approve") from None
    if about != digests:
        raise InputError(f"{path}: approves another file, or another version of it")
    return Responsible(**{name: clipped(value, MOST_TEXT) for name, value in texts.items()})


def responsible(texts: dict[str, str], policy: str | None, today: date) -> Responsible:
    """From the options of the command. Raises InputError for a text that is empty or too long."""
    for name, text in texts.items():
        option = f"--{name.replace('approved_', '')}"
        if not text.strip() or len(text) > MOST_TEXT or re.search(r"[\x00-\x1f\x7f]", text):
            raise InputError(f"{option}: expected 1 to {MOST_TEXT} characters in one line")
    return Responsible(**texts, approved_on=today.isoformat(), policy=policy)
