"""From the floats of a solver to the integers of an exact form, privacy first."""
