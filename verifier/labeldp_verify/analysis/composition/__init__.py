"""What many labels of one user spend together, from the integers alone (Theorem 12).

Read in this order: ``divergence.py`` (integers → hockey-stick divergences from above),
``dominating_pair.py`` (divergences → masses on an even lattice of privacy losses) and ``losses.py``
(their composition in integers).
"""
