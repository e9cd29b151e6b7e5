"""How does a client or a repository get set up?

In come clients' configuration files and a repository; out come an entry for SAGE with every other
byte as it was, a starting `.knowledge`, and a diagnosis of what does not work.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = [
    "adopt",
    "backups",
    "client_check",
    "clients",
    "doctor",
    "entries",
    "hook_files",
    "hook_hosts",
    "registration",
    "scaffold",
]
