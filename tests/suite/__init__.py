"""How the suite runs: its order, what each worker gets, and what this machine leaves out."""
