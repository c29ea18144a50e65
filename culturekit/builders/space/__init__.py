"""The cultural space: built, released, imported, compared."""
