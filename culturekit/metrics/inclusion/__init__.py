"""Geographic inclusion: how people in and out of a region see its pictures, and how distances follow them."""
