"""Label randomizers in exact integers; no float decides how private an output is."""
