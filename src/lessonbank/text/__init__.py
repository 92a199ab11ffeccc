"""What is done to text alone: how a run is rendered for a model, and how words are counted."""
