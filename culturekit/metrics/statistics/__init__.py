"""What every family needs: intervals, comparisons, correlations, agreement."""
