"""Typed handles: what a family reads, as files with their roles and what their manifests say."""
