"""Puts a bank into an agent framework: a module for each, imported only on use, so that none is needed here."""
