"""What `--help` prints of a command: its arguments and options in words, not in Python's types."""

from typing import Any

from typer.core import TyperCommand


class Command(TyperCommand):
    """A command whose help shows what to type first, then the options."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002 - Typer's signature
        """What follows the command's name in the line that begins with `Usage:`."""
        arguments = [_usage(one) for one in self.params if one.param_type_name == "argument"]
        return [*arguments, "[OPTIONS]"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the tables of arguments and options."""
        shown = [one for one in self.get_params(ctx) if not getattr(one, "hidden", False)]
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            rows = [(_name(one), _meaning(one)) for one in shown if one.param_type_name == kind]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def examples(*lines: str) -> str:
    """The end of a command's help; after backspace the lines are not joined to a paragraph."""
    title = "Example:" if len(lines) == 1 else "Examples:"
    return "\n".join(["\b", title, *(f"  {line}" for line in lines)])


def default_of(parameter: Any) -> str:
    """What a parameter is without being given, or nothing where that is nothing."""
    if isinstance(parameter.show_default, str):
        return str(parameter.show_default)
    default = parameter.default
    none = default is None or default is False or default == "" or callable(default)
    return "" if none or not parameter.show_default else str(default)


def _usage(parameter: Any) -> str:
    return _name(parameter) if parameter.required else f"[{_name(parameter)}]"


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar)
    names = ", ".join(sorted(parameter.opts, key=len))
    return f"{names} {parameter.metavar}" if parameter.metavar else names


def _meaning(parameter: Any) -> str:
    facts = [f"variable: {parameter.envvar}"] if parameter.envvar else []
    default = default_of(parameter)
    facts += [f"default: {default}"] if default else []
    return f"{parameter.help or ''}  [{'; '.join(facts)}]" if facts else parameter.help or ""
