"""Problems: environments with a policy to train, and quadratics."""
