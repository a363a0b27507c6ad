"""Reading: statistics, plots and reports made from records."""
