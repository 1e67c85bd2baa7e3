"""Small random specs over all forms, domains and mechanisms."""

import random

_NUMERIC = (
    "randomized_response",
    "rr_on_bins",
    "rr_with_prior",
    "rr_top_k, k: {top}",
    "debiased_rr",
    "optimal_unbiased",
    "laplace",
    "laplace, clip: true",
    "staircase",
    "staircase, clip: true",
    "exponential",
)
_CATEGORICAL = ("randomized_response", "rr_with_prior", "rr_top_k, k: {top}", "exponential")


def random_spec(generator: random.Random) -> str:
    """The text of a spec that compiles; 2 to 40 labels, ε from 0.1 to 6, public prior."""
    k = generator.choice([2, 3, 5, 9, 20, 40])
    epsilon = generator.choice(["0.1", "0.3", "0.7", "1.0", "1.9", "3.0", "6.0"])
    weights = [generator.randrange(1, 100) for _ in range(k)]
    kind = generator.choice(["integer", "integer", "real", "categorical"])
    if kind == "integer":
        low = generator.randrange(-50, 50)
        domain = f"{{kind: integer, min: {low}, max: {low + k - 1}}}"
    elif kind == "real":
        domain = f"{{kind: real, min: -1.5, max: 7.25, points: {k}}}"
    else:
        values = ", ".join(f"c{i}" for i in range(k))
        domain = f"{{kind: categorical, values: [{values}]}}, out_of_domain: {{default: c0}}"
    mechanism = generator.choice(_CATEGORICAL if kind == "categorical" else _NUMERIC)
    loss = "zero_one" if kind == "categorical" else "squared"
    return f"""
version: 1
name: random
label: {{column: y, domain: {domain}}}
loss: {loss}
privacy: {{epsilon: {epsilon}}}
prior: {{kind: public, weights: {weights}}}
mechanism: {{kind: {mechanism.format(top=generator.randint(1, k))}}}
"""
