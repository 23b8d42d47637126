"""What a fleet compiles: the training of one agent, wherever its environments run."""
