"""Descriptors: what pictures of an activity in a country should show, proposed by several models and refined by one."""
