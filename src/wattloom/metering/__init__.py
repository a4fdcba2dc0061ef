"""How many joules this machine uses, and whose they are: meters, and the account that shares out what they count."""
