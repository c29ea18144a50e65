"""Parts of runs that recipes of several kinds have: stages that belong together, wired."""
