"""Regression coefficients of the original features, with intervals that include privacy noise.

All of it post-processes what a method has released, or private labels: it spends nothing.
"""
