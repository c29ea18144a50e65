"""How unlike the pictures of a batch are: distances of pairs, measured by a network or by angles."""
