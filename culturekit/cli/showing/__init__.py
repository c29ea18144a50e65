"""How progress and messages look on a terminal, in a log, to a machine."""
