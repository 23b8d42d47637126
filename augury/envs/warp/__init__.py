"""Tasks whose physics runs on a GPU, inside the compiled program: MuJoCo Warp through its JAX interface."""
