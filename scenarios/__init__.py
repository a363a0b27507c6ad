"""Composing: problems, scenario files, the runner, the result store and the command line."""
