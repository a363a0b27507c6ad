"""Theory beside measurement: ``straggler validate``, one part of the validation a file."""
