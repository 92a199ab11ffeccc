"""What figures of the documentation are measured with: one module or package for each, run by `python -m`."""
