"""Time: the discrete-event engine, delays, networks, schedules, executors and records."""
