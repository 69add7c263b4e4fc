"""Command `completion`: print the script with which a shell completes our commands."""

import click

from kfp_placement.cli.group import COMPLETE_VARIABLE, command

_EPILOG = """\b
Examples:
  source <(kfp-placement completion bash)              # this shell; or into ~/.bashrc
  kfp-placement completion zsh > "${fpath[1]}/_kfp-placement"
  kfp-placement completion fish > ~/.config/fish/completions/kfp-placement.fish
"""


@command(epilog=_EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    completer = kind(context.find_root().command, {}, "kfp-placement", COMPLETE_VARIABLE)
    click.echo(completer.source())
