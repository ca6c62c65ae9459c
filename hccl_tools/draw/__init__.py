"""Pictures of a rank table: for the terminal, for programs, for papers."""
