"""Models of the simulated world that read and look: what they know, what they see, and what they say of it."""
