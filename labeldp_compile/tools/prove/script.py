"""What Coq is told of one artifact: its integers, and what they prove.

Nothing but numbers and digests of the artifact reaches the text: a name could end a comment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from labeldp_verify.artifact import Artifact
from labeldp_verify.claims import rational
from labeldp_verify.forms import RealDomain
from labeldp_verify.graph import tables_digest
from labeldp_verify.kernel import Integers, Window

from labeldp_compile.tools.prove import theory
from labeldp_compile.tools.prove.terms import Stated, labels, stated

MAX_INTEGERS = 100_000  # Coq reads about 1,500 a second
MAX_ENTRIES = 10_000  # of a lookup: Coq reads them for seven seconds
_MOST_TERMS = 5_000


@dataclass(frozen=True)
class Proof:
    """A Coq file about one artifact.

    Attributes:
        text: the file.
        epsilon: what it proves of every label.
        theorems: the names of what it proves; Coq prints for each what it rests on.
    """

    text: str
    epsilon: Fraction
    theorems: tuple[str, ...]


def proof_of(
    decoded: Artifact,
    read: Integers,
    *,
    most_entries: int = MAX_ENTRIES,
    ratio: Fraction | None = None,
    self_contained: bool = True,
) -> Proof:
    """The Coq file about a verified artifact.

    Args:
        decoded: the verified file.
        read: its integers, as the kernel reads them.
        most_entries: up to so many entries of its lookup, the draw of a window is that of the
            graph's gather from them; otherwise that of the segments.
        ratio: what is stated of them; by default what the certificate proves.
        self_contained: with the theory in it; otherwise it needs ``-Q proofs LabelDP``.
    """
    exact = decoded.certificate.exact
    ratio = rational(exact.realised_ratio) if ratio is None else ratio
    epsilon = rational(exact.epsilon_label_bound)
    if read.lookup is not None and len(read.lookup.entries) > most_entries:
        read = read._replace(lookup=None)
    grouped = decoded.certificate.groups is not None
    form = stated(read, grouped=grouped)
    files = (*form.files, "Mixtures", "Epsilon")
    theorems = ["artifact_is_private"]
    parts = [
        _header(decoded),
        theory.modules(files) if self_contained else _required(files),
        f"Import {' '.join(theory.needed(files))}.\n" if self_contained else "",
        "Import ListNotations.\nOpen Scope Z_scope.\n",
        "(** * The integers of the file *)\n",
        form.definitions,
        _statement(form, ratio, epsilon, labels(read)),
    ]
    if isinstance(read.tables[0], Window) and not grouped:
        theorems.append("private_at_any_offset")
        parts.append(_ANY_OFFSET)
    if isinstance(decoded.label, RealDomain) and decoded.label.rounding == "unbiased":
        theorems.append("rounded_labels_are_private")
        parts.append(_rounded(form))
    users = decoded.certificate.composition
    if users is not None:
        theorems.append("labels_of_one_person_are_private")
        parts.append(_users(form, users.labels_per_user))
    parts += (f"Print Assumptions {name}.\n" for name in theorems)
    return Proof("\n".join(filter(None, parts)), epsilon, tuple(theorems))


def _header(decoded: Artifact) -> str:
    digest = tables_digest(decoded.label, decoded.lookup)
    return f"""\
(** The integers of a labeldp artifact, and a proof that they are private. It begins with the
    theory; what is about this artifact stands at the end, from "The integers of the file" on.

    SHA-256 of the artifact:    {decoded.sha256}
    SHA-256 of its tables:      {digest}

    To check it with Coq 8.16 or newer: coqc, and the name of this file. It prints for each theorem
    what it rests on: nothing, or "Closed under the global context".

    That this file is about that artifact, neither Coq nor the digests above can show, for anybody
    can write them. "labeldp prove ARTIFACT --check FILE.v" compares it with what ARTIFACT gives.

    Outside of this proof: that the graph computes these integers (labeldp verify rebuilds the whole
    file from them, byte for byte, and runs it around its thresholds), and that every word is
    uniform, secret and used once. *)
"""


def _required(files: Sequence[str]) -> str:
    return (
        "From Coq Require Import ZArith List QArith.\n"
        f"From {theory.PREFIX} Require Import {' '.join(theory.needed(files))}.\n"
    )


def _statement(form: Stated, ratio: Fraction, epsilon: Fraction, labels: int) -> str:
    p, q = epsilon.numerator, epsilon.denominator
    return f"""\
(** * What is proved of them *)

Definition num : Z := {ratio.numerator}.
Definition den : Z := {ratio.denominator}.
Definition epsilon : Q := {p} # {q}.
Definition k : Z := {labels}.

Lemma ratio_is_epsilon : epsilon_check num den epsilon {terms(ratio, epsilon)} = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Lemma checked : {form.check} = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

{form.more}
Lemma private_in_words : {form.group}private num den (row k) {form.words} {form.draw}.
Proof. {form.theorem} Qed.

Theorem artifact_is_private :
  {form.group}epsilon_private epsilon (row k) {form.words} {form.draw}.
Proof.
  intros. apply (epsilon_private_proof num den epsilon _ _ _ _ ratio_is_epsilon).
  apply private_in_words; assumption.
Qed.
"""


_ANY_OFFSET = """\
Theorem private_at_any_offset :
  epsilon_private epsilon (in_range artifact) (words 64) (window_draw artifact).
Proof.
  apply (epsilon_private_proof num den epsilon _ _ _ _ ratio_is_epsilon).
  exact (window_offsets_private_proof num den artifact checked).
Qed.
"""


def _rounded(form: Stated) -> str:
    return f"""\
(** A real label lies at the rows fst p and fst p + 1, and snd p of the 2^53 values of its last
    word round it up. *)
Theorem rounded_labels_are_private :
  {form.group}epsilon_private epsilon
    (fun p => row k (fst p) /\\ (row k (fst p + 1) \\/ snd p <= 0))
    (list_prod {form.words} (words 64))
    (fun p => mixed {form.draw} (rounded (fst p) (snd p))).
Proof.
  intros. apply (epsilon_private_proof num den epsilon _ _ _ _ ratio_is_epsilon).
  apply rounded_private_proof, private_in_words; assumption.
Qed.
"""


def _users(form: Stated, labels: int) -> str:
    return f"""\
Theorem labels_of_one_person_are_private :
  private (num ^ {labels}) (den ^ {labels})
    (fun ys => length ys = Z.to_nat {labels} /\\ forall y, In y ys -> row k y)
    (tuples (Z.to_nat {labels}) {form.words}) (drawn_all {form.draw}).
Proof.
  pose proof (tuples_private_proof num den (row k) {form.words} {form.draw} (Z.to_nat {labels})
    ltac:(discriminate) ltac:(discriminate) private_in_words) as H.
  rewrite Z2Nat.id in H by discriminate. exact H.
Qed.
"""


def terms(ratio: Fraction, epsilon: Fraction) -> int:
    """The least n for which the ratio is at most Σ εʲ/j! over j ≤ n; ValueError if there is none.

    The proved ε is at least ln of the ratio, and above it unless the ratio is 1.
    """
    total = term = Fraction(1)
    for n in range(_MOST_TERMS):
        if ratio <= total:
            return n
        term = term * epsilon / (n + 1)
        # Sums are cut to 4,096 bits: Coq takes the whole ones, which are larger.
        total += _cut(term)
        term = _cut(term)
    raise ValueError("the ratio is no lower bound of e to the epsilon")


def _cut(number: Fraction) -> Fraction:
    return Fraction((number.numerator << 4096) // number.denominator, 1 << 4096)
