"""Lessons as files that people and coding agents read, runs as ATIF. Text and bytes, no bank.

`inert` is the form of a lesson's words in a file, `block` the part between two markers that is ours, `formats` the
kinds of file, `foreign` what people wrote elsewhere, `disk` reads and replaces a file.
"""
