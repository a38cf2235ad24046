"""Private tuning: a search over settings whose cost is charged, or said not to be."""
