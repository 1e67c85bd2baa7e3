"""Claims of every certificate about its file: stated, with all other claims, and checked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

from labeldp_verify.analysis import LOSSES, CostMatrix, Costs, Loss, analyse, exp_lower
from labeldp_verify.claims.claim import Claim, Evidence, all_claims
from labeldp_verify.claims.records import (
    ADJACENCY,
    Certificate,
    Declaration,
    ExactTableClaims,
    FieldLists,
    PortableClaims,
    PrivatePriorClaims,
    TableClaims,
    WholeFile,
    Witness,
)
from labeldp_verify.claims.tables import total_bound
from labeldp_verify.claims.utility import (
    Facts,
    Use,
    bound_facts,
    penalised,
    ratio_facts,
    together,
    use_facts,
    use_of,
)
from labeldp_verify.errors import agree, demand
from labeldp_verify.forms import CategoricalDomain, Domain, IntegerDomain, Integers
from labeldp_verify.graph import FORMAT_VERSION, tables_digest
from labeldp_verify.graph.inputs import limbs_per_word
from labeldp_verify.graph.model import PORTABLE
from labeldp_verify.strict import ShapeError, plain, rational, read_field, read_record

# A proved field is re-derived from the integers in the file (loss, bound and gap for the prior that
# the certificate states). Everything else is only declared: a forger with this open writer can
# restate it in a well-formed file, and only a signature protects it.
PROVED = (
    "form",
    "labels",
    "outputs",
    "label.domain",
    "privacy.epsilon_label_bound",
    "utility.noisy_label_loss",
    "utility.largest_bias",
    "utility.rms_bias",
    "utility.biases",
    "utility.output_rounding",
    "utility.loss_lower_bound",
    "utility.certified_gap",
    "optimality",
    "exact.realised_ratio",
    "exact.epsilon_label_bound",
    "exact.noisy_label_loss",
    "exact.largest_bias",
    "exact.loss_lower_bound",
    "digests.tables",
)
DECLARED = (
    "name",
    "mechanism",
    "auto",
    "goal",
    "label.column",
    "privacy.adjacency",
    "privacy.epsilon_label",
    "privacy.epsilon_prior",
    "privacy.epsilon_total",
    "utility.loss",
    "prior",
    "digests.spec",
    "tools",
    "insecure",
)

S = TypeVar("S", WholeFile, TableClaims)
_MAX_ROWS = 2**53
_SLACK = Fraction(1, 10**9)  # of a scale in float64


def field_lists(certificate: Certificate | None) -> FieldLists:
    """The fields that a file with these claims proves, and those that it only declares."""
    parts = {} if certificate is None else certificate.parts
    stated = [claim for claim in all_claims() if claim.part in parts]
    return FieldLists(
        [*PROVED, *(field for claim in stated for field in claim.proved)],
        [*DECLARED, *(field for claim in stated for field in claim.declared)],
    )


def parse_certificate(value: Any) -> Certificate:
    """The certificate of parsed JSON.

    Raises ShapeError unless fields and types are exactly the format's.
    """
    if type(value) is not dict or "optimality" not in value:
        raise ShapeError("certificate")
    value, kinds = dict(value), {claim.part: claim.record for claim in all_claims()}
    stated = {name: value.pop(name) for name in kinds if name in value}
    optimality = value.pop("optimality")
    listed = None
    if type(groups := stated.get("groups")) is dict:
        stated["groups"] = dict(groups)
        listed = stated["groups"].pop("tables", None)
    whole = read_record(WholeFile, value, "certificate")
    witness = read_field(Witness | None, optimality, "certificate.optimality")
    parts = {
        name: read_record(kinds[name], part, f"certificate.{name}") for name, part in stated.items()
    }
    costs = None
    if "costs" in parts:
        try:
            costs = CostMatrix(parts["costs"])
        except ValueError as error:
            raise ShapeError(f"certificate.costs: {error}") from None
    whole = _with_costs(whole, costs)
    if "groups" not in parts:
        tables = [_only_table(whole, witness)]
    else:
        if witness is not None or not listed:
            raise ShapeError("certificate.groups.tables" if witness is None else "optimality")
        tables = read_field(list[TableClaims], listed, "certificate.groups.tables")
        tables = [_with_costs(table, costs) for table in tables]
    losses = {whole.utility.loss, *(table.utility.loss for table in tables)}
    if not all(loss in LOSSES for loss in losses):
        raise ShapeError("certificate.utility.loss")
    return Certificate(**vars(whole), tables=tables, parts=parts)


def _with_costs(stated: S, loss: Loss | None) -> S:
    """The claims with a loss that has its costs with it. Raises ShapeError if it is another."""
    if not isinstance(loss, CostMatrix):
        return stated
    if stated.utility.loss != loss:
        raise ShapeError("certificate.utility.loss: it is not the name of the costs")
    return replace(stated, utility=replace(stated.utility, loss=loss))


def _only_table(whole: WholeFile, witness: Witness | None) -> TableClaims:
    """The claims of the only table, which are those of the whole file."""
    exact = {name: getattr(whole.exact, name) for name in ExactTableClaims.__dataclass_fields__}
    return TableClaims(
        size=1,
        outputs=whole.outputs,
        epsilon_label_bound=whole.privacy.epsilon_label_bound,
        utility=whole.utility,
        optimality=witness,
        prior=whole.prior,
        exact=ExactTableClaims(**exact),
    )


@dataclass(frozen=True)
class TableStatement:
    """Claims about one table that its integers do not prove alone.

    Attributes:
        size: the public number of rows of its group.
        prior: as in ``Declaration``, of the group's labels.
        witness: of a lower bound on the loss, with the bound; None if there is none.
        lists_biases: whether the bias of every label is stated.
    """

    size: int
    prior: dict[str, Any]
    witness: tuple[Witness, Fraction] | None = None
    lists_biases: bool = False


def state_certificate(
    integers: Integers, loss: Loss, declared: Declaration, tables: Sequence[TableStatement]
) -> Certificate:
    """All claims of integers, ``tables`` [T + 1] in their order.

    Raises ValueError if a table is not ε₂-DP: nothing uncertified is ever written.
    """
    domain, epsilon = integers.label, declared.epsilon_label
    ratios, uses, claims = [], [], []
    for randomizer, table in zip(integers.tables, tables, strict=True):
        ratio = analyse(randomizer).worst_ratio()
        if ratio > exp_lower(epsilon):
            raise ValueError("the integers are not ε-DP for the declared ε")
        use = use_of(domain, randomizer, loss, declared.losses, table.prior["weights"])
        ratios.append(ratio)
        uses.append(use)
        claims.append(_table(table, randomizer.outputs, ratio, use, loss))
    bound, objective = total_bound(claims, uses)
    by_group = bool(integers.groups.columns)
    whole = {
        **use_facts(together([table.size for table in tables], uses), loss),
        **bound_facts(bound, objective),
        **ratio_facts(max(ratios)),
        "utility.loss": str(loss),
        **({"costs": plain(loss.costs)} if isinstance(loss, CostMatrix) else {}),
        "utility.biases": None if by_group else claims[0].utility.biases,
        "optimality": None if by_group else plain(claims[0].optimality),
        "prior": tables[-1].prior,
    }
    whole |= _declared(declared) | {
        "form": integers.lookup.form,
        "labels": domain.size,
        "outputs": integers.lookup.outputs,
        "label.domain": domain.to_json(),
        "digests.tables": tables_digest(domain, integers.lookup),
        "format_version": FORMAT_VERSION,
        "fields": plain(field_lists(None)),
    }
    stated = replace(parse_certificate(_nested(whole)), tables=claims)
    found = Evidence(integers, stated, ratios, uses)
    for claim in all_claims():
        part = claim.state(found, declared)
        if part is not None:
            stated.parts[claim.part] = part
    return replace(stated, fields=field_lists(stated))


def check_whole_file(found: Evidence, form: str) -> None:
    """Demand that counts, digests, sums of ε and lists of fields are those of the integers."""
    certificate, integers = found.certificate, found.integers
    exact = certificate.exact
    agree(certificate, "form", form)
    agree(certificate, "outputs", integers.lookup.outputs)
    agree(certificate, "digests.tables", tables_digest(integers.label, integers.lookup))
    agree(certificate, "privacy.adjacency", ADJACENCY)
    lists = field_lists(certificate)
    agree(certificate, "fields.proved", lists.proved)
    agree(certificate, "fields.declared", lists.declared)
    label, prior = rational(exact.epsilon_label), rational(exact.epsilon_prior)
    demand(prior >= 0, "the ε spent on the prior is negative")
    _check_private_priors(certificate, prior)
    agree(certificate, "exact.epsilon_total", str(label + prior))
    for part, value in [("label", label), ("prior", prior), ("total", label + prior)]:
        agree(certificate, f"exact.epsilon_{part}", str(value))
        agree(certificate, f"privacy.epsilon_{part}", float(value))


def _check_private_priors(certificate: Certificate, epsilon: Fraction) -> None:
    """Demand that what is declared of private priors is possible; ``epsilon`` is ε₁ of all.

    That a histogram was counted, of which rows and with which noise, no file proves. But no table
    has a negative number of rows, and noise of too small a scale costs more than is declared.
    """
    of_tables = [table.prior for table in certificate.tables]
    for least, prior in [(1, certificate.prior), *((0, prior) for prior in of_tables)]:
        if not isinstance(prior, PrivatePriorClaims):
            continue
        demand(least <= prior.rows < _MAX_ROWS, "the number of rows of the prior is out of range")
        demand(prior.labels == certificate.labels, "the prior has another number of labels")
        demand(prior.l1_sensitivity > 0, "the prior's sensitivity is not above 0")
        demand(
            math.isfinite(prior.scale) and prior.scale > 0,
            "the noise of the prior has no scale above 0",
        )
        cost = prior.l1_sensitivity / Fraction(prior.scale)
        demand(cost <= epsilon * (1 + _SLACK), "the noise of the prior spends more than its ε")


def _table(
    table: TableStatement, outputs: int, ratio: Fraction, use: Use, loss: Loss
) -> TableClaims:
    witness, bound = table.witness or (None, None)
    facts = {
        **ratio_facts(ratio),
        **use_facts(use, loss),
        **bound_facts(bound, penalised(witness, use.loss[0], use.mean_square)),
        "utility.loss": str(loss),
        "utility.biases": use.biases.floats() if table.lists_biases and use.biases else None,
        "optimality": plain(witness),
        "prior": table.prior,
        "outputs": outputs,
        "size": table.size,
    }
    value = _nested(facts)
    value |= value.pop("privacy")  # whose only field stands by itself here
    return _with_costs(read_record(TableClaims, value, "table"), loss)


def _declared(declared: Declaration) -> Facts:
    """The fields that no file proves."""
    label, prior = declared.epsilon_label, declared.epsilon_prior
    epsilons = {"label": label, "prior": prior, "total": label + prior}
    return {
        "name": declared.name,
        "mechanism": declared.mechanism,
        "auto": declared.auto,
        "goal": declared.goal,
        "label.column": declared.column,
        "privacy.adjacency": ADJACENCY,
        **{f"privacy.epsilon_{part}": float(value) for part, value in epsilons.items()},
        **{f"exact.epsilon_{part}": str(value) for part, value in epsilons.items()},
        "digests.spec": declared.spec_digest,
        "tools": declared.tools,
        "insecure": declared.insecure,
    }


def _nested(facts: Facts) -> dict[str, Any]:
    """Fields by dotted names as JSON."""
    nested: dict[str, Any] = {}
    for field, value in facts.items():
        part, _, name = field.partition(".")
        if name:
            nested.setdefault(part, {})[name] = value
        else:
            nested[part] = value
    return nested


# ---- The costs of a loss that is a matrix.


class CostsClaim(Claim[Costs]):
    """What each output costs for each label; the name of the loss is their digest."""

    part = "costs"
    record = Costs
    proved = ("costs.labels",)
    declared = ("costs.unit", "costs.rows")
    has_step = False  # the loss is checked with them

    def state(self, found: Evidence, declared: Declaration) -> Costs | None:
        """Those of the loss."""
        return getattr(found.certificate.utility.loss, "costs", None)

    def require(self, certificate: Certificate, domain: Domain) -> None:
        """Demand that they are those of the labels."""
        costs = certificate.parts.get(self.part)
        if costs is not None:
            known = isinstance(domain, CategoricalDomain | IntegerDomain)
            demand(known and costs.labels == [*domain.listed], "the costs are of other labels")

    def check(self, found: Evidence) -> str:
        """The loss and its bound are derived from them."""
        return "the costs are those of the loss"


# ---- That a file is portable: it takes random words in limbs, with operators that old hosts have.


class PortableClaim(Claim[PortableClaims]):
    """That the graph takes words in limbs, and how many; the rebuilt file proves it."""

    part = PORTABLE
    record = PortableClaims
    proved = ("portable.limbs_per_word",)
    has_step = False  # the graph is checked with the whole file

    def derive(self, found: Evidence) -> PortableClaims:
        """As many as the integers need."""
        return _of(found.integers)

    def state(self, found: Evidence, declared: Declaration) -> PortableClaims | None:
        """Nothing: a file becomes portable afterwards (``as_portable``)."""
        return None


def as_portable(certificate: Certificate, integers: Integers) -> Certificate:
    """The certificate of the portable file with the same integers."""
    stated = replace(certificate, parts=certificate.parts | {PORTABLE: _of(integers)})
    return replace(stated, fields=field_lists(stated))


def _of(integers: Integers) -> PortableClaims:
    """As many limbs as hold the bits of every table."""
    return PortableClaims(max(limbs_per_word(one.word_bits) for one in integers.tables))
