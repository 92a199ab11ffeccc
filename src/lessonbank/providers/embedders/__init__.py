"""Embedders: what turns texts into unit vectors of one named space."""
