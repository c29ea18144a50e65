"""The stages that make pictures or take them in."""
