"""The `inclusion` recipe as stages: objects in regions, photographs beside them, and what people of each region see."""
