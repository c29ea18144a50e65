"""From images to vectors to the nearest artifact."""
