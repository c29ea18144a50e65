"""How far a mapping can be trusted."""
