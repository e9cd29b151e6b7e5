"""What happens when the system fails a call, or ends the process, at every possible moment."""
