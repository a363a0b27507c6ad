"""What theory says of a scenario: ``straggler theory``."""
