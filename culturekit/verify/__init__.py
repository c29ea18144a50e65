"""An independent recomputation of what a run says: written from the formulas, sharing no code with the metrics."""
