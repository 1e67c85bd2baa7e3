"""Tools that look at artifacts and compare them; compiling an artifact needs none of them."""
