"""torch.distributed.launch: the former name of torchrun, with `--use-env` and a rank as an argument of the script."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence

from .run import get_args_parser, run

__all__ = ["launch", "main", "parse_args"]


def parse_args(args: Sequence[str]) -> argparse.Namespace:
    """The options of a command line: torchrun's, and `--use-env`."""
    parser = get_args_parser()
    parser.add_argument(
        "--use-env", "--use_env", action="store_true", help="Pass LOCAL_RANK as an environment variable only, as torchrun does."
    )
    return parser.parse_args(args)


def launch(args: argparse.Namespace) -> None:
    """Run the job; without `--use-env` scripts get `--local-rank` as their first argument."""
    if args.no_python and not args.use_env:
        raise ValueError("When using the '--no-python' flag, you must also set the '--use-env' flag.")
    if not args.use_env:
        args.training_script_args = ["--local-rank=${local_rank}", *args.training_script_args]
    run(args)


def main(args: Sequence[str] | None = None) -> None:
    """The command."""
    warnings.warn(
        "The module torch.distributed.launch is deprecated\nand will be removed in future. Use torchrun.\n"
        "Note that --use-env is set by default in torchrun.\nIf your script expects `--local-rank` argument to be set, please\n"
        "change it to read from `os.environ['LOCAL_RANK']` instead. See \n"
        "https://pytorch.org/docs/stable/distributed.html#launch-utility for \nfurther instructions\n",
        FutureWarning,
        stacklevel=2,
    )
    launch(parse_args(sys.argv[1:] if args is None else args))


if __name__ == "__main__":
    main()
