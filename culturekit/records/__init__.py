"""Frozen types and table schemas that cross the borders between packages."""
