"""Facts about this host: one module per source; each returns facts with their source, none guesses."""
