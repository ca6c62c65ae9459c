"""Spare hosts: which hosts of a job were lost, and a table in which spares take their places."""
