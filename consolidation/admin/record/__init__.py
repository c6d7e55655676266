"""The record of one decision, to be read, printed and kept."""
