"""Pictures of a table: its boxes, their layout, and the files in which they are written."""
