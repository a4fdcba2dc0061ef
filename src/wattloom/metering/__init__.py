"""How many joules this machine uses: the protocol of meters, one file for each, and how the best is chosen."""
