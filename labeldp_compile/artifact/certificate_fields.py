"""Which fields of a certificate a file proves, and which it only declares; part of the format.

A proved field is re-derived from the integers in the file (loss, bound and gap for the prior that
the certificate states). Everything else is somebody's word: a forger with
this open writer can restate it in a well-formed file, and only a signature protects it.
"""

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
# Of a certificate that says what a user with several labels pays.
COMPOSITION_PROVED = (
    "composition.epsilon_pure",
    "composition.pair",
    "composition.epsilon_at_delta",
)
COMPOSITION_DECLARED = ("composition.labels_per_user", "composition.epsilon_prior")
ADJACENCY = "substitution of one label"


def field_lists(*, composition: bool) -> dict[str, list[str]]:
    """The certificate's ``fields``."""
    return {
        "proved": [*PROVED, *(COMPOSITION_PROVED if composition else ())],
        "declared": [*DECLARED, *(COMPOSITION_DECLARED if composition else ())],
    }
