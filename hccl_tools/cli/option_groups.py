"""A command whose help shows its options in groups, and whose program argument ends the options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hccl_tools.cli import foreign_options
from hccl_tools.cli.help_option import QuickHelp
from hccl_tools.cli.values import EITHER_SPELLING, hyphenated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hccl_tools.cli.other_launchers import Foreign


#: The key of the typed options in ``click.Context.meta``.
TYPED_OPTIONS = "hccl_tools.typed_options"


def typed_without(typed: Sequence[str], *left_out: str) -> Iterator[str]:
    """Yield typed options without some options that take a value."""
    words = iter(typed)
    for word in words:
        name, equals, _ = word.partition("=")
        short = word[:2] if word[:1] == "-" != word[1:2] else ""
        if hyphenated(name) in left_out:
            if not equals:
                next(words, None)
        elif short not in left_out:
            yield word


class GroupedCommand(QuickHelp):
    """A command that starts a program: ``options... PROGRAM its-own-arguments...``.

    Options end at the program; the arguments after it belong to the program. ``--log_dir`` and ``--log-dir``
    are the same option. ``bare_options`` maps options with an optional value to the default (``--dry-run``).
    ``spellings`` maps an argument that click would read as several short options to the option (``-np``).
    ``foreign`` returns the translation of an option of other launchers. ``defaults`` returns options that are
    put before the typed ones; it gets the first names of the typed ones.
    """

    def __init__(
        self,
        name: str,
        groups: Mapping[str, Sequence[click.Option]],
        bare_options: Mapping[str, str],
        spellings: Mapping[str, str],
        foreign: Callable[[str], Foreign | None],
        *,
        defaults: Callable[[set[str]], Sequence[str]] = lambda _typed: (),
        **attributes: Any,
    ) -> None:
        self.groups = groups
        self.bare_options = bare_options
        self.spellings = spellings
        self.foreign = foreign
        self.defaults = defaults
        parameters: list[click.Parameter] = [option for options in groups.values() for option in options]
        parameters.append(
            click.Argument(["program"], nargs=-1, type=click.UNPROCESSED, metavar="PROGRAM ARGS...")
        )
        super().__init__(
            name,
            params=parameters,
            context_settings={
                "allow_interspersed_args": False,
                **EITHER_SPELLING,
                "help_option_names": ["-h", "--help"],
                "max_content_width": 110,
            },
            **attributes,
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Add the default to options that were given without their optional value, then parse."""
        complete = self._with_values(args)
        complete[:0] = self.defaults(self._first_names(complete))
        try:
            rest = super().parse_args(ctx, list(complete))
        except click.NoSuchOption as error:
            raise _as_typed(error, complete) from error
        # The options before the program are passed to the launchers on other hosts.
        ctx.meta[TYPED_OPTIONS] = tuple(complete[: len(complete) - len(ctx.params["program"])])
        return rest

    def _first_names(self, complete: Sequence[str]) -> set[str]:
        """Return the options of a command line, each by its first name."""
        known = {hyphenated(name): option.opts[0] for option in self._own_options() for name in option.opts}
        found = set[str]()
        takes_value = self._takes_value()
        words = iter(complete)
        for word in words:
            if not word.startswith("-") or word in {"-", "--"}:
                break
            name = hyphenated(word.partition("=")[0])
            short = word[:2] if not word.startswith("--") else name
            found.add(known.get(name) or known.get(short, name))
            if _wants_next(hyphenated(word), takes_value):
                next(words, None)
        return found

    def _takes_value(self) -> dict[str, bool]:
        return {hyphenated(name): not one.is_flag for one in self._own_options() for name in one.opts}

    def _own_options(self) -> Iterator[click.Option]:
        return (option for options in self.groups.values() for option in options)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options group by group, and ``--help`` at the end."""
        for title, options in self.groups.items():
            if records := [_record(option) for option in options if not option.hidden]:
                with formatter.section(title):
                    formatter.write_dl(records)
        if (help_option := self.get_help_option(ctx)) and (record := help_option.get_help_record(ctx)):
            with formatter.section("Help"):
                formatter.write_dl([record])

    def _with_two_dashes(self, token: str, takes_value: Mapping[str, bool]) -> str:
        """Return a long option that is typed with one dash, as mpirun takes it, with two: ``-hostfile``.

        click would read it as several short options.

        Raises:
            NoSuchOption: It is an option of other tools.
        """
        name = token.partition("=")[0]
        long = hyphenated(f"-{name}")
        if name.startswith("--") or len(name) < 3:
            return token
        if long in takes_value or self.foreign(long) is not None:
            return f"-{token}"
        if foreign_options.any_answer(self.name or "", (name, long)):
            raise click.NoSuchOption(name, ctx=click.get_current_context(silent=True))
        return token

    def _with_values(self, args: list[str]) -> list[str]:
        takes_value = self._takes_value()
        done: list[str] = []
        position = 0
        while position < len(args) and (token := args[position]).startswith("-") and token not in {"-", "--"}:
            position += 1
            token = self._with_two_dashes(self.spellings.get(token, token), takes_value)
            name = hyphenated(token)
            if name in self.bare_options:
                done.append(f"{name}={self.bare_options[name]}")
                continue
            typed, equals, value = token.partition("=")
            own = hyphenated(typed)
            if own not in takes_value and (foreign := self.foreign(own)) is not None:
                if not (equals or foreign.is_flag):
                    value = args[position] if position < len(args) else ""
                    position += 1
                done += foreign.options(typed, value)
                continue
            done.append(token)
            if _wants_next(name, takes_value) and position < len(args):
                done.append(args[position])
                position += 1
        return done + args[position:]


def _wants_next(name: str, takes_value: Mapping[str, bool]) -> bool:
    if name.startswith("--") or len(name) == 2:
        return takes_value.get(name, False)
    # The text after the first letter with a value is that value: -n4.
    wanting = next((place for place in range(1, len(name)) if takes_value.get(f"-{name[place]}")), None)
    return wanting == len(name) - 1


def _as_typed(error: click.NoSuchOption, args: Sequence[str]) -> click.NoSuchOption:
    names = (arg.partition("=")[0] for arg in args)
    typed = next((name for name in names if hyphenated(name) == error.option_name), error.option_name)
    return click.NoSuchOption(typed, possibilities=error.possibilities, ctx=error.ctx)


def _record(option: click.Option) -> tuple[str, str]:
    short = [name for name in option.opts if not name.startswith("--")]
    first_long = next(name for name in option.opts if name.startswith("--"))
    names = ", ".join([*short, first_long])
    choices = "|".join(option.type.choices) if isinstance(option.type, click.Choice) else ""
    value = option.metavar or choices
    shown = f"{names}{value}" if value.startswith("[") else f"{names} {value}".rstrip()
    default = f" [{option.default:g}]" if isinstance(option.default, float) else f" [{option.default}]"
    variable = f" [{option.envvar}]" if option.envvar else ""
    return shown, (option.help or "") + (default if option.show_default else "") + variable
