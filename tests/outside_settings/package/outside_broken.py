"""A meter whose package lacks something."""

raise ImportError("libstrip.so is not there")
