"""The bounds and defaults of what a call may ask for, the same for tools and commands."""

from sage.errors import InvalidInput

ALL_LAYERS = "all"

MAX_TOKENS = 1_000_000
DEFAULT_MAX_TOKENS = 8_000
MAX_TOPIC = 500

MAX_RESULTS = 50
DEFAULT_RESULTS = 10

MAX_BUDGET = 200_000
DEFAULT_BUDGET = 4_000
DEFAULT_LANGUAGE = "python"
MAX_TASK = 20_000
MAX_CURRENT_FILES = 500


def check_range(name: str, value: int, most: int) -> None:
    """Refuse what is not between one and the most.

    Raises:
        InvalidInput: with both bounds.
    """
    if not 1 <= value <= most:
        raise InvalidInput(f"{name} is {value}; use a whole number from 1 to {most:,}")


def checked_topic(topic: str | None) -> str | None:
    """The topic without blanks around it; None when it names nothing.

    Raises:
        InvalidInput: it is too long to be one.
    """
    if topic is None or not topic.strip():
        return None
    if len(topic) > MAX_TOPIC:
        raise InvalidInput(f"topic has {len(topic)} characters, at most {MAX_TOPIC} are allowed")
    return topic.strip()
