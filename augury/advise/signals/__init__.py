"""What can be known about an augmentation before anybody trains with it: one module for each signal."""
