"""Learning: coordinators, update rules, policies, gradient estimators and the catalogue."""
