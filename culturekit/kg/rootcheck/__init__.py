"""Checks of root configs against themselves, a redirect map and a graph; and drafts of new ones."""
