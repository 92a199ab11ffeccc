"""How good a judge is, and whose lessons are better: labelled runs in, the labels hidden, a table out."""
