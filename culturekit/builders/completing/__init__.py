"""What a collection lacks, proposed, checked and reconciled."""
