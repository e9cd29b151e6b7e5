"""Inputs that nobody wrote: mutations of real ones, and calls made up from the live schemas."""
