"""The priors of all tables: given, uniform, or estimated privately from data."""
