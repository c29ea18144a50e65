"""Images bought from paid services: requests, replies, rows, and the journal behind them."""
