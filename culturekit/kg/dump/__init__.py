"""From the bytes of a dump to a graph on disk."""
