"""Tables of a run held against the files, replies and vectors behind them."""
