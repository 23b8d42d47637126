"""panda-gym's tasks, in processes of their own: what the MuJoCo ones are compared with."""
