"""The recorder: what it guards and what it unrolls."""
