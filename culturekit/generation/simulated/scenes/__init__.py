"""Scenes of activities: what the simulated world shows of them, what a model knows of that, and how it is drawn."""
