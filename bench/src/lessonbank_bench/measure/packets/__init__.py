"""Packets of failed runs for blind readers: would what retrieval shows have helped?"""
