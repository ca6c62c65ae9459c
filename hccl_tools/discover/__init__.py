"""What this host is: one module per source; each returns facts and names where it has them, none guesses."""
