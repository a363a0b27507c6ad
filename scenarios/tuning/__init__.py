"""Tuning: every method gets the same care, and its winner is judged on fresh seeds."""
