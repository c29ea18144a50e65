"""The checks, one kind of mistake in a file."""
