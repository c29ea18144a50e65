"""What a run would do, told without doing it."""
