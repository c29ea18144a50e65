"""How fast a server may be asked, when again, and how long an outage is borne."""
