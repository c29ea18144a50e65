"""Families of scores: what each reads, its options, and how its scores come about, in one file each."""
