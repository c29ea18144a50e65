"""Several runs on one page: their headline scores, what is comparable, and what is not."""
