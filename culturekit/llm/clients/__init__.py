"""Who is asked: remote services, a model in this process, fixed rules, stored replies."""
