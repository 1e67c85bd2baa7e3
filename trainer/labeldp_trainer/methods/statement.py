"""The privacy statement of a run as JSON, as one line, and as paragraphs with headings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from labeldp_verify.printable import at_most, one_line, width

from labeldp_trainer.config import Config, Privatized
from labeldp_trainer.config.method import Correction
from labeldp_trainer.randomize import epsilon_up

if TYPE_CHECKING:  # only private labels have an artifact
    from labeldp_verify.artifact import Artifact

FORMAT_VERSION = "1.0"
ADJACENCY = "replacing the label of one row; features and the number of rows are public"
_MAX_CHARACTERS = 20_000
_COLUMNS = 100
_WORDS = ("remarks", "again", "declared")  # stand in the paragraph alone
_INDENT, _ITEM = "  ", "- "
_TEST_LABELS = "metrics on the test set, which use its true labels"


def another_run(cost: str, *, doing: str = "", free: str = "") -> str:
    """The remark that a promise holds for one run; ``free`` adds what spends nothing."""
    return f"Training again {doing}spends {cost} again. Resuming this run does not{free}."


def written(number: float) -> str:
    """ε or δ with all digits. A rounded value could promise more than is kept."""
    return repr(float(number)).removesuffix(".0")


def spent(epsilon: float, delta: float) -> str:
    """ε and δ with their names; δ = 0 is left out."""
    return f"ε = {written(epsilon)}" + (f", δ = {written(delta)}" if delta else "")


class Excess(NamedTuple):
    """How likely outcomes are that say more than ε allows: Pr[privacy loss > ε], Theorem 20.

    Attributes:
        bound: an upper bound.
        gaussian: the probability for continuous noise, if the release is one Gaussian.
    """

    bound: Fraction
    gaussian: Fraction | None = None

    def to_json(self) -> dict[str, float | None]:
        """Both as floats that are not below them."""
        above = [None if x is None else math.nextafter(float(x), 1.0) for x in self]
        return dict(zip(("at_most", "gaussian"), above, strict=True))

    def in_words(self) -> str:
        """A sentence."""
        exact = "" if self.gaussian is None else f"; {at_most(self.gaussian, 3)} for Gaussian noise"
        return (
            "δ is not the probability that ε fails: outcomes that say more than ε allows have a "
            f"probability of at most {at_most(self.bound, 3)} (Theorem 20{exact})."
        )


@dataclass(frozen=True)
class Statement:
    """The privacy promise of a run.

    Attributes:
        method: the kind of method in the config.
        epsilon: ε of (ε, δ)-DP for one unit, or None without privacy.
        delta: δ; 0 for pure DP.
        mechanism: the mechanism in words.
        details: numbers and digests behind ε.
        released: what the promise covers and may be published.
        secret: what must stay secret.
        not_covered: what the run writes and the promise does not cover.
        remarks: further sentences.
        again: the sentence on what another run spends, if it spends anything.
        declared: sentences on what nothing here can prove.
        adjacency: which tables count as neighbours.
        limits: what the proof does not cover.
    """

    method: str
    epsilon: float | None
    delta: float
    mechanism: str
    adjacency: str = ADJACENCY
    details: Mapping[str, Any] = field(default_factory=dict)
    released: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    again: str = ""
    declared: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The contents of ``privacy.json``."""
        facts = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _WORDS}
        return {
            "format_version": FORMAT_VERSION,
            "method": self.method,
            "adjacency": self.adjacency,
            **facts,
            "delta": self.delta if self.epsilon is not None else None,
            "statement": self.paragraph(),
        }

    def paragraph(self) -> str:
        """The whole statement in one line. Names from a certificate cannot add a line."""
        if self.epsilon is None:
            promise = self._promise()
        else:
            promise = f"{self._promise()} Mechanism: {self.mechanism}."
        sentences = [f"{title}: {'; '.join(items)}." for title, items in self._lists() if items]
        return one_line(" ".join([promise, *sentences, *self._remarks()]), _MAX_CHARACTERS)

    def text(self) -> str:
        """The contents of ``privacy.txt``: short paragraphs with headings.

        Only headings start at the left margin, and only items start with a mark. So names from a
        certificate cannot look like either.
        """
        parts: list[tuple[str, str, Sequence[str]]] = [("Promise", "", (self._promise(),))]
        if self.epsilon is not None:
            parts.append(("Mechanism", "", (f"{self.mechanism}.",)))
        parts += [(title, _ITEM, items) for title, items in self._lists()]
        parts.append(("Remarks", _ITEM, self._remarks()))
        paragraphs = [
            "\n".join([title, *(line for item in items for line in _wrapped(item, mark))])
            for title, mark, items in parts
            if items
        ]
        return "\n\n".join(paragraphs)

    def _promise(self) -> str:
        if self.epsilon is None:
            return f"There is no privacy: {self.mechanism}."
        kind = f"({spent(self.epsilon, self.delta)})-label-DP"
        return f"What is released is {kind} under this adjacency: {self.adjacency}."

    def _remarks(self) -> tuple[str, ...]:
        return (*self.remarks, *((self.again,) if self.again else ()), *self.declared)

    def _lists(self) -> tuple[tuple[str, Sequence[str]], ...]:
        return (
            ("Released", self.released),
            ("Must stay secret", self.secret),
            ("Not covered", self.not_covered),
            ("Limits", self.limits),
        )


def protected(
    config: Config,
    *,
    epsilon: float,
    mechanism: str,
    details: Mapping[str, Any],
    released: tuple[str, ...],
    secret: tuple[str, ...] = ("the true labels",),
    remarks: tuple[str, ...] = (),
    delta: float = 0.0,
    limits: tuple[str, ...] = (),
    excess: Excess | None = None,
    again: tuple[str, str] | None = None,
    declared: tuple[str, ...] = (),
) -> Statement:
    """The promise of a method with privacy, for the unit in its config.

    ``again`` says what another run does and what spends nothing instead.
    """
    most = config.examples_per_user
    adjacency = ADJACENCY
    if most is None:
        remarks = ("A person with several labels spends ε for each of them.", *remarks)
    else:
        adjacency = (
            f"replacing all labels of one user, with at most {most:,} rows of each user, chosen "
            "without reading labels; features, who owns which row, and the number of rows are "
            "public"
        )
    if excess is not None:
        remarks = (excess.in_words(), *remarks)
        details = {**details, "loss_above_epsilon": excess.to_json()}
    further = ""
    if again is not None:
        cost = spent(epsilon, delta)
        cost = cost if delta == 0 else f"({cost})"
        further = another_run(cost, doing=again[0], free=again[1])
    return Statement(
        method=config.method.kind,
        epsilon=epsilon,
        delta=delta,
        mechanism=mechanism,
        adjacency=adjacency,
        details={
            **details,
            "unit": "label" if most is None else "user",
            "max_examples_per_user": most,
        },
        released=released,
        secret=secret,
        not_covered=() if config.data.test is None else (_TEST_LABELS,),
        limits=limits,
        remarks=remarks,
        again=further,
        declared=declared,
    )


def cost_to_users(most: int, used: int, rows: int, prior: str = "") -> str:
    """The remark on a user's ε: ``used`` of ``rows`` labels, at most ``most`` of each user.

    ``prior`` says what a private prior adds.
    """
    return (
        f"At most {most:,} labels of each user were used ({used:,} of {rows:,} labels). So ε is "
        f"{most:,} times the ε of a label (group privacy){prior}."
    )


def _wrapped(text: str, mark: str) -> list[str]:
    """Lines of at most ``_COLUMNS`` columns. The first one starts with the mark."""
    room = _COLUMNS - len(_INDENT + mark)
    lines: list[str] = []
    for word in one_line(text, _MAX_CHARACTERS).split():
        for part in _pieces(word, room):
            if lines and width(lines[-1]) + 1 + width(part) <= room:
                lines[-1] += f" {part}"
            else:
                lines.append(part)
    starts = [_INDENT + mark, *[_INDENT + " " * len(mark)] * len(lines)]
    return [start + line for start, line in zip(starts, lines, strict=False)]


def _pieces(word: str, room: int) -> list[str]:
    """The word, or parts that fit in a line. No character is wider than two columns."""
    if width(word) <= room:
        return [word]
    return [word[i : i + room // 2] for i in range(0, len(word), room // 2)]


# The promise of a run on labels that a certified randomizer made private.


def privatized_statement(
    config: Config,
    method: Privatized,
    artifact: Artifact,
    *,
    labels: tuple[int, int],
    correction: Correction | None,
    debiased: bool,
    doubts: list[str],
) -> Statement:
    """The promise; ``labels`` counts the labels that are used, and all labels.

    ``correction`` and ``debiased`` say what a loss or a closed form corrects, ``doubts`` why a
    private column may hold true labels.
    """
    # Other methods, and code that reads run folders, do without.
    from labeldp_verify.artifact import largest_bias  # noqa: PLC0415
    from labeldp_verify.claims import DECLARED_BY, person_epsilon  # noqa: PLC0415
    from labeldp_verify.strict import rational  # noqa: PLC0415

    used, whole = labels
    certificate, privacy = artifact.certificate, artifact.certificate.privacy
    here = method.private_column is None
    most = method.max_examples_per_user
    where = f"randomized once with {certificate.mechanism} ({certificate.name})"
    if artifact.answers_with_sets:
        where += ", whose output is the number of a set of classes"
    names = [column.name for column in artifact.groups.columns]
    if names:
        where += (
            f", using the table of its row's group ({artifact.groups.tables:,} tables; by "
            f"{', '.join(names)})"
        )
    parts = privacy.epsilon_label, privacy.epsilon_prior, privacy.epsilon_total
    label, prior, total = (written(part) for part in parts)
    mechanism = (
        f"each of {used:,} labels was {where}, with ε = {label} per label; the prior spent "
        f"ε = {prior} for each compile that read the labels; a label in both spent at least "
        f"{total} in total"
    )
    spent = rational(certificate.exact.epsilon_label) * (most or 1)
    again, of_prior = written(epsilon_up(spent)), ""
    person, of_person = person_epsilon(certificate), ""
    if most is None:
        spent += rational(certificate.exact.epsilon_prior)
    elif person is not None and person.prior > 0:  # Theorem 12 (g)
        spent += person.prior
        of_prior = (
            f", and {written(epsilon_up(person.prior))} for the prior, which counted at most "
            f"{person.labels:,} labels of each user"
        )
    if person is not None:
        of_person = (
            f"The artifact declares that a person has up to {person.labels:,} labels. All of them "
            f"and the prior spend {person.in_words()}. labeldp randomize counts the labels of each "
            "person by a public column; nothing here can prove it."
        )
    remarks = {
        "Training only post-processes the private labels. It spends nothing more, even if it is "
        "repeated on the same private labels.": True,
        cost_to_users(most or 1, used, whole, of_prior): most is not None,
        of_person: person is not None,
        f"The artifact declares that one compile spent ε = {prior} on the prior. Every further "
        "compile on the same labels spends it again, and nothing here counts "
        "them.": privacy.epsilon_prior > 0,
        "ε counts the labels that were used. If further labels of "
        f"{method.private_column!r} are released, their users spend ε for these, too.": (
            not here and most is not None
        ),
    }
    declared = {
        f"The config declares that {method.private_column!r} was made with this artifact and that "
        "its labels were randomized once; nothing here can prove it.": not here,
        f"{DECLARED_BY[0].upper()}{DECLARED_BY[1:]} of the artifact declares that groups are "
        "public and were fixed before any label was seen; nothing here can prove it.": bool(names),
    }
    details = {
        "epsilon_label": privacy.epsilon_label,
        "epsilon_prior": privacy.epsilon_prior,
        "artifact_name": certificate.name,
        "artifact_mechanism": certificate.mechanism,
        "certificate_source": "artifact",
        "certificate_source_sha256": artifact.sha256,
        "artifact_verified": True,
        "largest_bias": largest_bias(artifact.label, certificate),
        "group_columns": names,
        "randomized_here": here,
        "debiased": debiased,
        "correction": correction,
        "labels": used,
        "doubts": doubts,
    }
    stated = protected(
        config,
        epsilon=epsilon_up(spent),
        mechanism=mechanism,
        details=details,
        released=("the private labels", "the parameters", "metrics on the private labels"),
        secret=("the true labels",),
        remarks=tuple(remark for remark, holds in remarks.items() if holds),
        declared=tuple(remark for remark, holds in declared.items() if holds),
    )
    if not here:
        return stated
    return replace(stated, again=another_run(f"ε = {again}", doing="randomizes again and "))
