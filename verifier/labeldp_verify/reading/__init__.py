"""What private labels are good for: read from integers that are verified, and trusted by nobody."""
