"""PATE: teachers on separate parts of the labels vote with noise, and a student learns from votes.

Malek et al. 2021, on the framework of Papernot et al. 2018. Here a teacher is a closed-form model
on public vectors, and the promise does not depend on the outcome of the votes.
"""
