"""A few adaptive releases of labels, each proved on integers, and a model from them.

A release asks for a histogram of labels, of sizes of residuals, or for a sum of public rows times
labels. What it asks depends on features and earlier answers alone (docs/privacy.md, Theorem 18).
"""
