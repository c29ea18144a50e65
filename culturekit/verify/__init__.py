"""A run verified by making it again: the chain of hashes, each stage, and the pictures that it shows."""
