"""What a person looks at and changes, by resource: lessons, runs, recalls, history, admin."""
