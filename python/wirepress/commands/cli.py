# SPDX-License-Identifier: Apache-2.0
"""The command `wirepress`: parses flags, runs one command, turns failures into one line."""

from __future__ import annotations

import argparse
import errno
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from wirepress import _core, api, arrays, report
from wirepress.commands import (
    bench,
    convert,
    explain,
    files,
    patch,
    paths,
    show,
    store_files,
    tensors,
    weights,
)
from wirepress.errors import ParameterError, WirepressError
from wirepress.launch import run, setup_mpi, stdio
from wirepress.sim import calibrate, plan, reproduce, simulate, trace_command

OK, FAILED, USAGE = 0, 1, 2


def _fail(text: object) -> None:
    print(f"wirepress: {text}", file=sys.stderr)


def _sentence(error: BaseException) -> str:
    """An error in one line."""
    if isinstance(error, BrokenPipeError):
        return "the reader of the output closed it"
    if isinstance(error, OSError) and error.errno == errno.EBADF and paths.stdout_is_closed():
        return "stdout is closed"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError) and not str(error):
        return "out of memory"
    return str(error)


# ---- commands over files --------------------------------------------------------------------


def _each_file(
    args: argparse.Namespace, call: Callable[[str, argparse.Namespace], Any]
) -> tuple[list[Any], int]:
    """Runs call for every file; a file that fails is reported and the next one is tried."""
    results, code = [], OK
    for name in args.files:
        try:
            results.append(call(name, args))
        except ParameterError:
            raise  # the same for all files
        except BrokenPipeError:
            raise
        except (WirepressError, OSError, MemoryError, files.UsageError) as error:
            text = _sentence(error)
            _fail(text if name in text else f"{'stdin' if name == files.PIPE else name}: {text}")
            code = FAILED
    return results, code


def _convert(convert: Callable[[str, argparse.Namespace], files.Result]) -> Any:
    def one(name: str, args: argparse.Namespace) -> dict[str, Any]:
        result = convert(name, args)
        files.finish(result, args)
        return result.as_json()

    def command(args: argparse.Namespace) -> int:
        files.check_request(args)
        results, code = _each_file(args, one)
        if args.json:
            # stdout may carry the result itself
            piped = any(result["output"] == files.PIPE for result in results)
            print(json.dumps(results, indent=2), file=sys.stderr if piped else sys.stdout)
        return code

    return command


def _inspect_file(name: str, args: argparse.Namespace) -> dict[str, Any]:
    with files.open_input(name) as opened:
        file = show.seekable(opened)
        head = file.read(4)
        file.seek(0)
        return (weights.inspector(head) or show.inspect_frames)(name, file, args)


def _inspect(args: argparse.Namespace) -> int:
    results, code = _each_file(args, _inspect_file)
    if args.json:
        show.print_json(results)
    return code


def _completion(args: argparse.Namespace) -> int:
    import shtab

    print(shtab.complete(make_parser(), args.shell))
    return OK


# ---- flags ----------------------------------------------------------------------------------


def _add_library_options(parser: argparse.ArgumentParser, *, but: Sequence[str] = ()) -> None:
    """One flag for every row of the library's option table that is not an integration's."""
    group = parser.add_argument_group(
        "library options", "the same as WIREPRESS_* variables; `wirepress options` lists all"
    )
    for option in api.options():
        if option.key.startswith((run.OPTION_PREFIX, "torch_")) or option.key in but:
            continue
        names = [option.flag] + (["-r"] if option.key == "recipe" else [])
        sentence = f"{option.sentence} (default {option.default or 'none'})"
        group.add_argument(
            *names,
            dest=option.key,
            metavar=_metavar(option),
            choices=option.choices or None,
            help=sentence.replace("%", "%%"),
        )


def _metavar(option: api.Option) -> str | None:
    if option.choices:
        return None
    return {"size": "SIZE", "rate": "RATE", "integer": "N", "boolean": "on|off"}.get(
        option.type, option.key.upper()
    )


def _add_file_flags(
    parser: argparse.ArgumentParser, result: str, inputs: str = "- is stdin"
) -> None:
    import shtab

    files_argument = parser.add_argument(
        "files", nargs="+", type=paths.file_name, metavar="FILE", help=inputs
    )
    files_argument.complete = shtab.FILE  # type: ignore[attr-defined]
    parser.add_argument(
        "-o", "--output", type=paths.file_name, metavar="FILE", help=f"{result}; - is stdout"
    )
    parser.add_argument("-f", "--force", action="store_true", help="overwrite what exists")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("-k", "--keep", action="store_true", help="keep FILE (the default)")
    source.add_argument(
        "--rm", action="store_true", help="remove FILE when its result is on stable storage"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")


class _Format(argparse.RawDescriptionHelpFormatter):
    """Keeps the examples' lines, and puts flags and sentences side by side."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26)


class _Parsers:
    """The subcommands, each with a description and examples."""

    def __init__(self, subparsers: Any) -> None:
        self._subparsers = subparsers

    def add(
        self, name: str, sentence: str, handler: Callable[[argparse.Namespace], int], examples: str
    ) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = self._subparsers.add_parser(
            name,
            help=sentence,
            description=sentence[0].upper() + sentence[1:] + ".",
            epilog="examples:\n" + examples,
            formatter_class=_Format,
        )
        parser.set_defaults(handler=handler)
        return parser


def _add_compress(parsers: _Parsers) -> None:
    parser = parsers.add(
        "compress",
        "make frames of files",
        _convert(files.compress_file),
        "  wirepress compress field.npy                   field.npy.wpr, knows dtype and shape\n"
        "  wirepress compress --smallest model.safetensors             every tensor as its type\n"
        "  wirepress compress -r bx:m=6 step.pt                  floats within 2^-7, nothing else\n"
        "  wirepress compress -r shuffle:4+zstd:3 --dtype float32 field.raw\n"
        "  tar c folder | wirepress compress - | ssh host 'wirepress decompress - | tar x'\n",
    )
    _add_file_flags(parser, f"the frame (default FILE{files.SUFFIX})")
    parser.add_argument("--dtype", metavar="NAME", help="what the elements of a raw file are")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--format",
        choices=tensors.FORMATS,
        help="what FILE is, so that tensors are coded as their types (default: by its name)",
    )
    form.add_argument(
        "--npy", dest="format", action="store_const", const="npy", help="--format npy"
    )
    form.add_argument(
        "--no-npy", dest="format", action="store_const", const="bytes", help="--format bytes"
    )
    parser.add_argument(
        "--smallest",
        action="store_true",
        help="try more codecs and keep the smallest: -r auto:goal=ratio, blocks of 4 MiB",
    )
    _add_library_options(parser)
    recipe = next(action for action in parser._actions if action.dest == "recipe")
    recipe.help = f"{recipe.help}; {arrays.DEFAULT_RECIPE} for elements of a known type"


def _add_decompress(parsers: _Parsers) -> None:
    parser = parsers.add(
        "decompress",
        "expand frames",
        _convert(files.decompress_file),
        "  wirepress decompress field.npy.wpr\n"
        "  wirepress decompress field.npy.wpr --no-npy -o field.raw    the elements alone\n"
        "  wirepress decompress - < data.wpr | wc -c\n",
    )
    _add_file_flags(parser, f"the content (default FILE without {files.SUFFIX})")
    parser.add_argument(
        "--npy",
        action=argparse.BooleanOptionalAction,
        help="write a .npy file (default: by the result's name, where the frame has a shape)",
    )
    _add_library_options(parser, but=("recipe", "block_size", "checksum", "probe"))


def _add_convert(parsers: _Parsers) -> None:
    parser = parsers.add(
        "convert",
        "turn .safetensors files into .wps files, which notice damage, and back",
        _convert(convert.convert_file),
        "  wirepress convert model.safetensors                   model.wps, bit for bit the same\n"
        "  wirepress convert model.wps                           model.safetensors again\n"
        "  wirepress convert --threads 2 --rm shard-*.safetensors\n",
    )
    _add_file_flags(
        parser, "the result (default FILE with the other suffix)", "one of the two kinds"
    )
    _add_library_options(parser, but=("checksum",))
    recipe = next(action for action in parser._actions if action.dest == "recipe")
    recipe.help = "codecs of float tensors (default planes, lossless); a lossy one loses digits"


def _add_inspect(parsers: _Parsers) -> None:
    parser = parsers.add(
        "inspect",
        "print the header of frames and a table of their blocks, or the tensors of .wps files and "
        "patches",
        _inspect,
        "  wirepress inspect field.npy.wpr\n  wirepress inspect --verify --json *.wpr\n"
        "  wirepress inspect model.wps step4.wpp\n",
    )
    parser.add_argument("files", nargs="+", type=paths.file_name, metavar="FILE", help="- is stdin")
    parser.add_argument("--verify", action="store_true", help="expand everything, too")
    parser.add_argument(
        "--blocks",
        type=files.whole(0),
        default=20,
        metavar="N",
        help="rows of the table (20); 0 is all",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with all blocks")


def _add_lists(parsers: _Parsers) -> None:
    for name, sentence, handler, example in (
        ("codecs", "list codecs, their parameters and kernels", show.codecs, ""),
        ("engines", "list the places where kernels run", show.engines, ""),
        (
            "options",
            "list options with their values and where these come from",
            show.options,
            "  WIREPRESS_RECIPE=lz4:9 wirepress options\n",
        ),
    ):
        parser = parsers.add(name, sentence, handler, f"  wirepress {name} --json\n{example}")
        parser.add_argument("--json", action="store_true", help="print JSON")
        if name == "engines":
            parser.add_argument(
                "--engine",
                default="auto",
                help="set up the device of this one, and say what it can do: compressdev:isal",
            )


def _add_completion(parsers: _Parsers) -> None:
    parser = parsers.add(
        "completion",
        "print a completion script for a shell",
        _completion,
        '  eval "$(wirepress completion bash)"\n'
        '  wirepress completion zsh > "${fpath[1]}/_wirepress"\n'
        "  wirepress completion fish > ~/.config/fish/completions/wirepress.fish\n",
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="wirepress",
        formatter_class=_Format,
        description="Compression in flight: frames, benchmarks, and MPI jobs that send less.",
        epilog="wirepress COMMAND --help says more, with examples.",
    )
    parser.add_argument("--version", action="version", version=f"wirepress {_core.version()}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    parsers = _Parsers(subparsers)
    _add_compress(parsers)
    _add_decompress(parsers)
    _add_convert(parsers)
    patch.add_parsers(parsers, _add_library_options)
    _add_inspect(parsers)
    _add_lists(parsers)
    bench.add_parser(parsers)
    calibrate.add_parser(parsers)
    explain.add_parser(parsers)
    plan.add_parser(parsers)
    report.add_parser(parsers)
    reproduce.add_parser(parsers)
    simulate.add_parser(parsers)
    store_files.add_parser(parsers)
    run.add_parser(subparsers)
    setup_mpi.add_parser(parsers)
    trace_command.add_parser(parsers)
    _add_completion(parsers)
    return parser


# ---- main -----------------------------------------------------------------------------------


def _exit_on(number: int, _frame: Any) -> None:
    sys.exit(128 + number)  # raises, so that temporary files are removed


def _drop_stdout() -> None:
    """What stdout could not take must not fail again when Python exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _flushed(code: int) -> int:
    """The exit status, after what was printed has left."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _fail(_sentence(error))
        _drop_stdout()
        return FAILED
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status: 0 done, 1 failed, 2 a wrong request."""
    stdio.open_standard_files()
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        return _run(arguments)


def _show_warning(message: Warning | str, *_: Any) -> None:
    _fail(str(message))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        args = make_parser().parse_args(arguments)
    except SystemExit as error:  # of --help, for example
        sys.exit(_flushed(error.code if isinstance(error.code, int) else USAGE))
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # by nohup
            signal.signal(number, _exit_on)
    try:
        code: int = args.handler(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        _fail("interrupted")
        return 128 + signal.SIGINT
    except (ParameterError, files.UsageError) as error:
        _fail(_sentence(error))
        return USAGE
    except (WirepressError, OSError, MemoryError, ImportError) as error:
        _fail(_sentence(error))
        if isinstance(error, OSError):
            _drop_stdout()
        return FAILED
    return code
