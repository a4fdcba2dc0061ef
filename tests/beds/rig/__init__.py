"""The rig: a test double for hardware, on which the true joules of every call are known.

Real processes run real calls, and one more process plays the silicon: it reads their true CPU use, gives each function
a power intensity of its own, and writes the energy counters that such a machine would show. Wattloom reads these with
its ordinary meter, so what it says of a call can be held against the truth. docs/explanation/attribution-accuracy.md
has the figures.
"""
