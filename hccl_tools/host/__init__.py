"""Determine facts about this host: one module per source; each fact is returned with its source."""
