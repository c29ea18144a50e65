"""Questions asked in batches: half the price, an answer within a day, collected by whoever comes back for it."""
