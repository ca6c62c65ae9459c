"""From the logs of a failed job to the cause, the rank and the line of the rank table."""
