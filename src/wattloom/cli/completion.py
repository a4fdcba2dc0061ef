"""`wattloom completion`: the script that teaches a shell to complete commands, policies and scenarios."""

import click
from click.shell_completion import get_completion_class

from wattloom.cli.printing import say


@click.command(short_help="Print the script that completes commands in your shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell. It completes commands, options, policies and scenarios.

    \b
    Examples:
      wattloom completion bash >> ~/.bashrc
      wattloom completion zsh >> ~/.zshrc
      wattloom completion fish > ~/.config/fish/completions/wattloom.fish
    """
    import wattloom.cli.shells  # noqa: F401  (it replaces what click knows of bash)
    from wattloom.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    say(kind(cli, {}, "wattloom", "_WATTLOOM_COMPLETE").source())
