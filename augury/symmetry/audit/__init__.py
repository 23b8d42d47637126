"""What in a model breaks its mirror symmetry."""
