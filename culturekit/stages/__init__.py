"""A stage as data: what it reads, what decides its bytes, and the function that writes its folder."""
