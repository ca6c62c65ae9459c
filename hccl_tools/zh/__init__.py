"""Chinese titles and remedies of rules, checks and messages, beside the English text that has their ids."""
