"""What is expected: run times by function and machine, and what a task would cost at a site."""
