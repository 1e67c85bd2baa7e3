"""What differs between two artifacts, or two specs, and what that breaks."""
