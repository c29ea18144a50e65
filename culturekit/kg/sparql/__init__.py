"""Candidates from a SPARQL endpoint instead of a dump."""
