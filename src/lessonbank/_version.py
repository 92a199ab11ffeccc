"""The release this is: stamped on every lesson, and read by the build."""

VERSION = "0.1.0"
