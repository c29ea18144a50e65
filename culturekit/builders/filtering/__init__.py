"""Candidates to artifacts: rules, a judge, a person."""
