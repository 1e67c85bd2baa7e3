"""What people and gates are told of a verification, and the command that tells them."""
