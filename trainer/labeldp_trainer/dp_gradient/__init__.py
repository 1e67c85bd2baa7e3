"""Differentially private gradients for labels: sampling, clipping, noise, denoising, accounting.

Works on any JAX function `loss(params, x, y) -> scalar` of one example and any pytree of
parameters.
"""
