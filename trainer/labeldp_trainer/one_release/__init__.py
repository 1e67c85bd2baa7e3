"""One noisy statistic that holds all that a model needs of the labels.

With public features xᵢ, a model with a canonical link sees labels only through S = Σ wᵢ·xᵢ ⊗ t(yᵢ).
S is released once; every fit afterwards is post-processing (docs/privacy.md, Theorem 13).
"""
