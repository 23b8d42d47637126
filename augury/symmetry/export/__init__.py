"""Maps that leave the house: small files of their own, and tests that ask the simulator about them."""
