"""Connections to other hosts over ssh or a similar program, and what is run at their other end."""
