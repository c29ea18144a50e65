"""Who works on the shards of a stage: processes here, or a cluster."""
