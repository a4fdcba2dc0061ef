"""What a machine draws and how fast it is: loads it step by step, reads the meter, writes a profile."""
