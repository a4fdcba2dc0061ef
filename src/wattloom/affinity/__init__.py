"""How well functions suit machines: bags of functions run here, what they show, and what ordinary runs add to it."""
