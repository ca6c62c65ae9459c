"""The validation rules: one short function per rule, one module per rule family."""
