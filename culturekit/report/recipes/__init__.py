"""The pages of recipes that are not of diversity: sections with tables, looked up in scores."""
