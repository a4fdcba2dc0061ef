"""One picture of this machine in joules, made once and shown everywhere: processes, containers, virtual machines."""
