"""A model of tables: a sum of effects of columns, of pairs and of triples of columns, on bins.

Bins and basis are learned from public features alone. What is learned from labels, and how
privately, is up to the method.
"""
