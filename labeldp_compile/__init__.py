"""A declarative compiler for label differential privacy."""
