"""What is wrong with a rank table: one short function per rule, in one module per family."""
