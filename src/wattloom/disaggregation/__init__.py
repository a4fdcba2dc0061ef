"""What each function draws, out of a whole machine's power and who ran when: arithmetic, no files or clocks."""
