"""Benchmarks as recipes, each in a folder of its own, and how recipes are planned, run and published."""
