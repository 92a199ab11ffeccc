"""Every HTML page and plot, in one style."""
