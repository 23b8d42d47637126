"""A Franka Panda at its table: four tasks on MuJoCo, and panda-gym's own as their reference."""
