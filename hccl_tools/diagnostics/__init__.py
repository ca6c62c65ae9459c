"""What is wrong with a table, as data, and how it is shown."""
