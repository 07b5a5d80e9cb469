"""Command line and servers: parse, call, render."""
