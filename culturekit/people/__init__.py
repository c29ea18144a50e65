"""People in the loop: forms out, answers in, and the tables they make."""
