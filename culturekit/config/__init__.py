"""Recipes: YAML that is checked whole before anything runs."""
