"""The nearest vectors, exactly."""
