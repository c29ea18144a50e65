"""Objects in regions: what the simulated world shows of them, how a model distorts that, and how it is drawn."""
