"""A policy as a YAML file: its keys, and what they name, read before anything is checked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, StrictBool, StrictInt, model_validator

from labeldp_compile.errors import SpecError
from labeldp_compile.ledger_url import is_url
from labeldp_compile.yaml_model import Document, Number, Strict

if TYPE_CHECKING:
    from labeldp_verify.signature import PublicKey

    from labeldp_compile.ledger.entries import Entry


class MaxInPeriod(Strict):
    """The most that a data set may spend within some days."""

    epsilon: Number = Field(ge=0)
    days: StrictInt = Field(ge=1, le=36_500)


class LeastUse(Strict):
    """How good private labels must be at least."""

    max_mean_error: Number | None = Field(
        None,
        gt=0,
        description="numbers: 95% margin of error of a mean over rows, for all labels in the range",
    )
    max_share_error: Number | None = Field(
        None, gt=0, description="classes: the same of the least certain share"
    )
    rows: StrictInt = Field(1000, ge=1, le=10**15, description="rows of these margins of error")
    max_bias: Number | None = Field(
        None, ge=0, description="numbers: a label may be off by this much on average"
    )
    min_outputs: StrictInt | None = Field(None, ge=1)
    no_warnings: StrictBool = Field(
        False, description="refuse every artifact that verify warns about for its goal"
    )
    open: Literal["refuse", "allow"] = Field(
        "refuse",
        description="plans: whether a limit passes that only the compiled file can decide",
    )

    @model_validator(mode="after")
    def _demands(self) -> Self:
        if not self.model_dump(exclude={"rows", "open"}, exclude_defaults=True):
            raise ValueError("usefulness demands nothing: give at least one limit")
        return self


class GatePolicy(Strict):
    """The demands of a company before artifacts, runs and ledgers are used."""

    version: Literal[1] = Field(description="version of the policy's format")
    name: str | None = Field(None, max_length=200)
    max_epsilon_label: Number | None = Field(
        None, ge=0, description="ε of one draw of a label; of an artifact the proved bound"
    )
    max_epsilon_total: Number | None = Field(
        None, ge=0, description="the same with the ε of the prior, which is declared"
    )
    max_epsilon_person: Number | None = Field(
        None, ge=0, description="ε of all labels of a person together, the prior included"
    )
    max_labels_per_person: StrictInt | None = Field(None, ge=1)
    max_epsilon_dataset: Number | None = Field(
        None, ge=0, description="the most budget and spending of a data set in a ledger"
    )
    max_epsilon_period: MaxInPeriod | None = None
    max_delta: Number = Field(
        Decimal(0), ge=0, lt=1, description="the largest δ; by default only ε without δ counts"
    )
    mechanisms: list[str] | None = Field(
        None, min_length=1, description="allowed mechanisms, and methods of training runs"
    )
    adjacency: list[Literal["label", "person"]] | None = Field(
        None, min_length=1, description="the protected unit: each label, or all of a person"
    )
    prior_booked: str | None = Field(
        None,
        min_length=1,
        description="a ledger (a file, relative to the policy, or postgresql://…) that must have "
        "the private prior of each artifact",
    )
    draw_once: StrictBool = Field(
        False, description="a ledger must not have two draws of one part of a data set"
    )
    signed_by: list[str] | None = Field(
        None,
        min_length=1,
        description="public keys (PEM files, relative to the policy), one of which must have "
        "signed each artifact",
    )
    min_group_rows: StrictInt | None = Field(
        None, ge=1, description="the fewest rows of a group with a table of its own"
    )
    usefulness: LeastUse | None = None
    specs: str | None = Field(
        None,
        min_length=1,
        description="a folder, relative to the policy; each artifact must be made from the spec "
        "of its name there",
    )

    @property
    def stated(self) -> list[str]:
        """The keys that demand something."""
        given = self.model_dump(exclude={"version", "name", "max_delta"}, exclude_defaults=True)
        return list(given)

    @model_validator(mode="after")
    def _demands(self) -> Self:
        if not self.stated:
            raise ValueError("the policy demands nothing: give at least one limit")
        return self


_POLICY = Document("policy", GatePolicy, SpecError)


@dataclass(frozen=True)
class LoadedPolicy:
    """A policy with all that it names.

    Attributes:
        rules: what it demands.
        path: of its file.
        sha256: of the bytes of its file.
        keys: of ``signed_by``.
        booked: the entries of the ledger ``prior_booked``, whose chain is whole.
        specs: the bytes of each spec in ``specs``, by its name.
    """

    rules: GatePolicy
    path: Path
    sha256: str
    keys: tuple[PublicKey, ...] = ()
    booked: tuple[Entry, ...] = ()
    specs: dict[str, bytes] | None = None


def load_policy(path: Path) -> LoadedPolicy:
    """Read a policy, its keys, its ledger and its specs.

    Raises SpecError for a wrong policy, InputError if something that it names cannot be read, and
    BrokenChainError, with exit code 1, if its ledger was altered.
    """
    text, data = _POLICY.read(path)
    rules, _ = _POLICY.parse(text, str(path))
    folder = path.parent
    keys: tuple[PublicKey, ...] = ()
    if rules.signed_by is not None:
        from labeldp_verify.signature import read_public_key  # noqa: PLC0415  # cryptography

        keys = tuple(read_public_key(folder / name) for name in rules.signed_by)
    booked: tuple[Entry, ...] = ()
    if rules.prior_booked is not None:
        from labeldp_compile.ledger.book import read_entries  # noqa: PLC0415

        name = rules.prior_booked
        # Somebody else may have written the policy: it names a server as a spec does.
        booked = tuple(read_entries(name if is_url(name) else folder / name, by_spec=True))
    specs = None
    if rules.specs is not None:
        from labeldp_compile.spec.agreement import specs_in  # noqa: PLC0415  # YAML, rounding

        specs = {name: data for name, (_, data) in specs_in(folder / rules.specs).items()}
    return LoadedPolicy(rules, path, hashlib.sha256(data).hexdigest(), keys, booked, specs)


def policy_schema() -> str:
    """The JSON Schema (draft 7) of a policy, for editors."""
    return _POLICY.json_schema("labeldp policy")
