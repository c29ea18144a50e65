"""The version of culturekit, which stands in every manifest."""

__all__ = ["VERSION"]

VERSION = "0.1.0"
"""The version, as manifests state it."""
