"""Sweeps: many scenarios that differ along axes, run into a store."""
