"""Which element of a model is the mirror image of which."""
