"""What energy figures are: forecasts, unknowns and the parts a total is split into."""
