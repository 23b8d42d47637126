"""The mirror of observations that are described by a list of named terms, in any joint order."""
