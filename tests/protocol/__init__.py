"""Tests that drive the real server process over standard input and output."""
