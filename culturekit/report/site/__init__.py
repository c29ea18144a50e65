"""Finished runs as a folder of pages that anybody can put on a web server, and as results that leaderboards read."""
