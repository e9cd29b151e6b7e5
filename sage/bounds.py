"""The bounds and defaults of what a call may ask for, the same for tools and commands."""

ALL_LAYERS = "all"

MAX_TOKENS = 1_000_000
DEFAULT_MAX_TOKENS = 8_000
MAX_TOPIC = 512

MAX_RESULTS = 50
DEFAULT_RESULTS = 10

MAX_BUDGET = 200_000
DEFAULT_BUDGET = 4_000
DEFAULT_LANGUAGE = "python"
MAX_TASK = 10_000
MAX_CURRENT_FILES = 200
