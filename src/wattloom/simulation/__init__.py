"""The first backend: virtual time, models of run time and power, scenarios and replay."""
