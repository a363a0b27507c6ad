"""What theory predicts: times of aggregation, complexities, guarantees and parameters."""
