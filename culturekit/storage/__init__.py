"""Finished work on disk: atomic publishing, manifests, hashes, locks, tables and string-safe YAML."""
