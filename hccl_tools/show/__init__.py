"""Draw a rank table: as text, as data, and as graphics."""
