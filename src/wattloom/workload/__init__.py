"""What is to be run: functions, their variants, tasks and what they require."""
