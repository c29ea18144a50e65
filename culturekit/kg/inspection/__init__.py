"""Looking into a graph: why, how much, what changed, what surrounds an item."""
