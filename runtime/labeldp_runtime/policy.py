"""The conditions of a service on an artifact before it uses it."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import cast

from labeldp_runtime.errors import MissingExtraError, PolicyError

_DECIMAL = re.compile(r"\+?([0-9]{1,100}\.?[0-9]{0,100}|\.[0-9]{1,100})([eE][-+]?[0-9]{1,2})?")
_RATIONAL = re.compile(r"[0-9]{1,1000}(/[0-9]{1,1000})?")
_NEEDS_LABELDP = (
    "a policy that verifies the artifact or its signature needs the package labeldp-verify: "
    "in a clone of labeldp, pip install ./verifier; or pin the sha256 of a verified file"
)

Epsilon = float | str | Decimal | Fraction


@dataclass(frozen=True)
class Policy:
    """Conditions on an artifact; each one given must hold.

    Unless ``sha256`` pins the file, it is verified, which needs the extra
    ``labeldp-runtime[verify]``: a certificate is only worth reading in a file that verifies.
    ``Policy()`` demands only that.

    Attributes:
        max_epsilon: the most that one randomization of a label may spend. It is compared with the
            proved bound (``exact.epsilon_label_bound``); a float means the decimal that it prints.
        name: of the spec. It is declared: it distinguishes artifacts and proves nothing.
        sha256: of the whole file, 64 hexadecimal digits, from a place that you trust.
        public_key: PEM file of the key that must have signed the file; needs the same extra. The
            signature is beside the file: FILE.sig of an Ed25519 key, FILE.sigstore.json of one
            on P-256.
        max_total_epsilon: the most that a label may spend in total, if the prior was counted from
            it, too. The ε of a prior is declared (``exact.epsilon_total``): no file proves it.

    >>> from pathlib import Path
    >>> from labeldp_compile import compile_spec  # another distribution
    >>> path = compile_spec("specs/health-rating.yaml").write(Path("build"))
    >>> from labeldp_runtime import Policy, Randomizer
    >>> Randomizer.load(path, require=Policy(max_epsilon=1)).label_type
    'string'
    >>> Randomizer.load(path, require=Policy(max_epsilon=0.5))
    Traceback (most recent call last):
    labeldp_runtime.errors.PolicyError: ...compile it with a smaller ε
    """

    max_epsilon: Epsilon | None = None
    name: str | None = None
    sha256: str | None = None
    public_key: str | Path | None = None
    max_total_epsilon: Epsilon | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a condition that no file could meet."""
        if self.sha256 is not None and (
            len(self.sha256) != 64 or set(self.sha256.lower()) - set("0123456789abcdef")
        ):
            raise ValueError("sha256 is 64 hexadecimal digits")
        for limit in ("max_epsilon", "max_total_epsilon"):
            value = getattr(self, limit)
            if value is not None and _number(limit, value) <= 0:
                raise ValueError(f"{limit} must be greater than 0")

    def check_file(self, data: bytes, source: str, path: Path | None = None) -> None:
        """Raise PolicyError unless the bytes have the digest, or verify, and are signed.

        ``path`` is where the file is. Only bytes that meet all of this are executed.
        """
        if self.public_key is not None:
            _check_signature(data, source, path, Path(self.public_key))
        if self.sha256 is None:
            _verify(data, source)
        elif (digest := hashlib.sha256(data).hexdigest()) != self.sha256.lower():
            raise PolicyError(
                f"{source}: has the SHA-256 {digest}, not {self.sha256}: "
                "deploy the pinned file, or verify this one and pin it"
            )

    def check_certificate(self, certificate: Mapping[str, object], source: str) -> None:
        """Raise PolicyError unless the certificate satisfies the conditions."""
        try:
            name, exact = certificate["name"], cast(Mapping[str, str], certificate["exact"])
            bound = _rational(exact["epsilon_label_bound"])
            asked = self.max_total_epsilon is not None
            total = _rational(exact["epsilon_total"]) if asked else bound
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise PolicyError(
                f"{source}: its certificate lacks a field that the policy needs: compile it again"
            ) from error
        if self.name is not None and name != self.name:
            raise PolicyError(
                f"{source}: is the artifact {name!r}, not {self.name!r}: deploy the right file"
            )
        if self.max_epsilon is not None and bound > _number("max_epsilon", self.max_epsilon):
            raise PolicyError(
                f"{source}: a label spends up to ε = {float(bound):.12g}, and the policy allows "
                f"{self.max_epsilon}: compile it with a smaller ε"
            )

        most = self.max_total_epsilon
        if most is not None and total > _number("max_total_epsilon", most):
            raise PolicyError(
                f"{source}: a label spends at least ε = {float(total):.12g} in total, if the prior "
                f"was counted from it (declared), and the policy allows {most}: compile it with a "
                "smaller ε"
            )


def _number(limit: str, value: Epsilon) -> Fraction:
    """A float means the decimal that it prints. Of text only ASCII digits are a number."""
    try:
        if isinstance(value, str) and not _DECIMAL.fullmatch(value):
            raise ValueError("not a decimal number")
        return Fraction(str(value) if isinstance(value, float) else value)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{limit} must be a number, not {value!r}") from error


def _rational(text: str) -> Fraction:
    """A fraction of bounded length: 1e999999999 is short, and takes all memory."""
    if not _RATIONAL.fullmatch(text):
        raise ValueError("not a fraction")
    return Fraction(text)


def _check_signature(data: bytes, source: str, path: Path | None, public_key: Path) -> None:
    try:
        from labeldp_verify.errors import InputError  # noqa: PLC0415
        from labeldp_verify.signature import read_signed_beside  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError(_NEEDS_LABELDP) from error
    if path is None:
        raise PolicyError(
            f"{source}: its signature is in a file beside it: load the artifact from its path"
        )
    try:
        signed = read_signed_beside(path, public_key)
    except InputError as error:
        raise PolicyError(f"{source}: its signature cannot be checked: {error}") from error
    if not signed.holds(data):
        raise PolicyError(
            f"{source}: was not signed with the key of {public_key}: do not use it; deploy the "
            "signed file, with its signature"
        )


_VERIFIED: set[str] = set()
"""SHA-256 of the bytes that this process has verified; kept in memory only."""


def _verify(data: bytes, source: str) -> None:
    digest = hashlib.sha256(data).hexdigest()
    if digest in _VERIFIED:  # the same bytes prove the same again
        return
    try:
        from labeldp_verify import TooLargeError, VerificationError, check_bytes  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError(_NEEDS_LABELDP) from error
    try:
        check_bytes(data).require()
    except VerificationError as error:
        raise PolicyError(
            f"{source}: does not verify: {error}: do not use it; compile it again"
        ) from error
    except TooLargeError as error:
        raise PolicyError(
            f"{source}: {error}: verify it once with labeldp verify, and pin its sha256"
        ) from error
    _VERIFIED.add(digest)
