"""The `c3` recipe as stages: captions that grow, models that draw them, pairs that strategies choose."""
