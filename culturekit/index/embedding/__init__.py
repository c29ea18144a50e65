"""Folders of vectors: pictures and texts embedded in shards."""
