"""MuJoCo tasks: physics, the vector engine, what an observation holds, Gymnasium's robots."""
