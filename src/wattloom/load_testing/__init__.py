"""Plans carried out under load: on this machine or on the simulator, what was asked, what was reached, what drifted."""
