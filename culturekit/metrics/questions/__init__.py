"""What answers to questions about images say of them: arithmetic on answers and probabilities."""
