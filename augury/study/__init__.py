"""Studies: arms side by side, from a file."""
