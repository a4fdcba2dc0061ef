"""Planning: which function runs on which server, so that wanted rates are kept and the energy is least.

Demand and servers in, an assignment with a proven distance to the best possible out. Knows no clock, no engine and no
backend; a plan is carried out by the policy `planned` and by the backends.
"""
