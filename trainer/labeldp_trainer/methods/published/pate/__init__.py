"""PATE: teachers on separate parts of the labels vote with noise, and a student learns from votes.

Malek et al. 2021, on the framework of Papernot et al. 2018. Here a teacher is a closed-form model
on public vectors, and the promise does not depend on the outcome of the votes.

Measured (``docs/measured/public-features.md``): 5.7 to 19 points behind one release on
Fashion-MNIST, and level with it on MNIST from ε = 0.1 to 0.5.
"""
