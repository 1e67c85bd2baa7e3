"""The specs of tests/old_files: every form, mechanism, kind of domain and kind of prior."""

_TEMPLATE = """\
version: 1
name: {name}
label:
  column: mdvis
  domain: {domain}
  out_of_domain: {rule}
loss: {loss}
privacy: {{epsilon: {epsilon}}}
prior: {prior}
mechanism: {mechanism}
"""
_INTEGER = "{kind: integer, min: 0, max: 11}"
_REAL = "{kind: real, min: -1.5, max: 2.25, points: 9}"
_COLOURS = "{kind: categorical, values: [red, green, blue, grün]}"
_CODES = "{kind: categorical, values: [7, -20, 300]}"
_UNIFORM = "{kind: uniform}"
_TWELVE = "{kind: public, weights: [30, 20, 15, 10, 8, 6, 4, 3, 2, 1, 1, 0]}"
_PRIVATE = "{kind: private, data: ../../../specs/data/randhie.parquet}"


def _spec(mechanism, domain=_INTEGER, loss="squared", epsilon=1, prior=_TWELVE, rule="clamp"):
    return {
        "mechanism": f"{{kind: {mechanism}}}",
        "domain": domain,
        "loss": loss,
        "epsilon": epsilon,
        "prior": prior,
        "rule": rule,
    }


_SPECS = {
    "randomized-response": _spec("randomized_response", epsilon=0.5),
    "randomized-response-large-epsilon": _spec("randomized_response", epsilon=20),
    "randomized-response-default": _spec("randomized_response", rule="{default: 3}"),
    "rr-top-k": _spec("rr_top_k, k: 4", loss="zero_one", epsilon="0.7"),
    "rr-with-prior-text": _spec(
        "rr_with_prior",
        _COLOURS,
        "zero_one",
        prior="{kind: public, weights: [5, 1, 3, 1]}",
        rule="{default: grün}",
    ),
    "rr-with-prior-codes": _spec(
        "rr_with_prior", _CODES, "zero_one", 2, _UNIFORM, "{default: -20}"
    ),
    "rr-on-bins-squared": _spec("rr_on_bins", epsilon=3),
    "rr-on-bins-absolute": _spec("rr_on_bins", loss="absolute", epsilon=4),
    "rr-on-bins-poisson": _spec("rr_on_bins", loss="poisson", epsilon=2),
    "rr-on-bins-many-labels": _spec(
        "rr_on_bins", "{kind: integer, min: -300, max: 300}", epsilon=4, prior=_UNIFORM
    ),
    "rr-on-bins-private-prior": _spec(
        "rr_on_bins", "{kind: integer, min: 0, max: 77}", prior=_PRIVATE
    ),
    "auto-private-prior": _spec(
        "auto, goal: training", "{kind: integer, min: 0, max: 77}", epsilon=2, prior=_PRIVATE
    ),
    "optimal-unbiased": _spec("optimal_unbiased"),
    "optimal-unbiased-real": _spec("optimal_unbiased", _REAL, prior=_UNIFORM, epsilon=2),
    "optimal-unbiased-grid": _spec(
        "optimal_unbiased, outputs: {values: [-12, -4, 0, 5, 11, 15, 23]}",
        loss="absolute",
        epsilon=2,
    ),
    "optimal-unbiased-max-bias": _spec("optimal_unbiased, bias: {max: 0.5}"),
    "optimal-unbiased-penalty": _spec("optimal_unbiased, bias: {penalty: 100}"),
    "optimal-unbiased-sample-size": _spec("optimal_unbiased, bias: {sample_size: 50}"),
    "debiased-rr": _spec("debiased_rr", epsilon=2),
    "laplace": _spec("laplace"),
    "laplace-real-unbiased": _spec("laplace", _REAL, prior=_UNIFORM, epsilon=2),
    "staircase-clipped-lattice": _spec("staircase, clip: true, lattice: 0.25", epsilon=2),
    "exponential": _spec("exponential", loss="absolute"),
    "exponential-real-nearest": _spec("exponential", _REAL, prior=_UNIFORM),
    "users-window": _spec("rr_on_bins", epsilon="3, labels_per_user: 12"),
    "users-table": _spec("exponential", epsilon="0.5, labels_per_user: 30"),
    "users-additive": _spec("laplace", epsilon="1, labels_per_user: 5"),
    "exponential-text": _spec(
        "exponential", _COLOURS, "zero_one", prior=_UNIFORM, rule="{default: red}"
    ),
}
SPECS = {name: _TEMPLATE.format(name=name, **parts) for name, parts in _SPECS.items()}
