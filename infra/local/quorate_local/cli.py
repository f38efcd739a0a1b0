"""`quorate-local up|run|down|status|drain|logs`: the commands behind `make up`, `make down`, …"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from quorate_local import observing
from quorate_local.display import Display
from quorate_local.drain import Coordinator, DrainFailed, follow
from quorate_local.layout import NotAStateFolder, read_json
from quorate_local.options import (
    BINARIES,
    COORDINATORS,
    REPOSITORY,
    SERVERS_DEFAULT,
    BadOptions,
    ServerResources,
    StackOptions,
)
from quorate_local.process import ProcessFailed, Running
from quorate_local.stack import AlreadyRunning, Busy, Stack

EXIT_FAILED = 1
EXIT_BAD_OPTIONS = 2
EXIT_INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    display = Display()
    try:
        result: int = chosen.run(chosen, display)
    except (BadOptions, NotAStateFolder) as error:
        display.line(f"{error}")
        return EXIT_BAD_OPTIONS
    except (AlreadyRunning, Busy, DrainFailed, ProcessFailed) as error:
        display.line(f"{error}")
        return EXIT_FAILED
    except KeyboardInterrupt:
        display.line("Interrupted.")
        return EXIT_INTERRUPTED
    except Exception as error:  # the embedded servers' error type is in a package that may be absent
        if type(error).__name__ != "EmbeddedError":
            raise
        display.line(f"{error}")
        return EXIT_FAILED
    return result


def up(chosen: argparse.Namespace, display: Display) -> int:
    stack = Stack(_options(chosen), display)
    display.line(f"Starting Quorate in {_short(stack.layout.root)}")
    stack.start()
    display.line()
    display.line(f"  Portal and API  {stack.api_url}")
    if "QUORATE_PORTAL_DIR" not in os.environ and not (stack.options.portal_dir / "index.html").exists():
        display.line("  (the portal is not built yet: `make build` builds it)")
    display.line(f"  Mail            {_short(stack.layout.mail)}/")
    display.line(f"  Logs            {_short(stack.layout.logs)}/")
    works = _show_alerts(stack, display)
    display.line()
    of = _of_state(stack.layout.root)
    display.line(f"`make status{of}` shows it, `make down{of}` stops it; WIPE=1 also removes its state.")
    return 0 if works else EXIT_FAILED


def _show_alerts(stack: Stack, display: Display) -> bool:
    """Try every alert on the live data of a Prometheus beside the stack."""
    url = stack.prometheus_url
    if url is None:
        return True
    display.line(f"  Prometheus      {url}")
    if stack.options.servers == 0:
        display.line(
            "  Without servers most series are missing: run `quorate-observe check-alerts` once there are some."
        )
        return True
    display.line()
    with display.step("waiting for the series that alerts ask for"):
        works, table = observing.check_alerts(url)
    display.line(table.rstrip())
    return works


def down(chosen: argparse.Namespace, display: Display) -> int:
    stack = Stack(StackOptions(state=chosen.state), display)
    was_there = stack.layout.root.exists()
    if chosen.wipe:
        stack.wipe()
    else:
        stack.stop()
    if not was_there:
        display.line(f"Nothing runs in {_short(stack.layout.root)}.")
    elif chosen.wipe:
        display.line(f"Stopped; {_short(stack.layout.root)} is removed.")
    else:
        display.line(f"Stopped. Its state is kept in {_short(stack.layout.root)}; `make up` continues from there.")
    return 0


def run(chosen: argparse.Namespace, display: Display) -> int:
    """A stack for the time of one command, which gets QUORATE_API_URL; then it is wiped."""
    stack = Stack(_options(chosen), display)
    stack.wipe()
    try:
        stack.start()
        env = {**os.environ, "QUORATE_API_URL": stack.api_url, "QUORATE_STATE": str(stack.layout.root)}
        return subprocess.run(chosen.argv, env=env, check=False).returncode
    finally:
        stack.stop()


def status(chosen: argparse.Namespace, display: Display) -> int:
    """Exit 0 if every started process runs, 1 otherwise."""
    stack = Stack.open(StackOptions(state=chosen.state))
    processes = stack.processes()
    if not processes:
        display.line(f"Nothing runs in {_short(stack.layout.root)}; `make up` starts a stack.")
        return EXIT_FAILED
    display.line(f"{'process':<14}{'state':<10}{'pid':>8}{'memory':>10}  {'up since':<22}address")
    for name, running in processes.items():
        display.line(_status_line(stack, name, running))
    dead = stack.dead()
    display.line()
    display.line(f"Portal and API  {stack.api_url}" if not dead else f"Not running: {', '.join(dead)}")
    return EXIT_FAILED if dead else 0


def logs(chosen: argparse.Namespace, display: Display) -> int:
    """The ends of all logs, or follow one with `--follow`."""
    layout = Stack(StackOptions(state=chosen.state)).layout
    files = sorted(layout.logs.glob(f"{chosen.process or '*'}.log"))
    if not files:
        display.line(f"No logs in {_short(layout.logs)}" + (f" for {chosen.process}" if chosen.process else ""))
        return EXIT_FAILED
    follow = ["-f"] if chosen.follow else []
    return subprocess.run(["tail", "-n", str(chosen.lines), *follow, *map(str, files)], check=False).returncode


def drain(chosen: argparse.Namespace, display: Display) -> int:
    """Move every replica of a server elsewhere, and wait until it may stop."""
    stack = Stack.open(StackOptions(state=chosen.state))
    if "coordinator_http" not in stack.addresses:
        display.line(f"Nothing runs in {_short(stack.layout.root)}; `make up` starts a stack.")
        return EXIT_FAILED
    with Coordinator(stack.leader_http(), stack.admin_token()) as coordinator:
        server_id = coordinator.server_id(chosen.server)
        if chosen.cancel:
            coordinator.cancel(server_id)
            display.line(f"The drain of {chosen.server} is cancelled; replicas that have moved stay in their places.")
            return 0
        coordinator.drain(server_id)
        shown = ""
        for progress in follow(coordinator, server_id, chosen.timeout):
            if not progress.done:
                display.progress(f"  {chosen.server}: {progress.replicas_left} left. {progress.message}")
                if "no other server" in progress.message and progress.message != shown:
                    shown = progress.message
                    display.line(f"{chosen.server}: {shown}")
    display.line(f"{chosen.server} is drained: it holds no replica and may stop.")
    return 0


def _status_line(stack: Stack, name: str, running: Running) -> str:
    alive = running.is_alive()
    memory = running.identity.memory_bytes() if alive else None
    megabytes = f"{memory[0] / 1e6:.0f} MB" if memory else ""
    record = read_json(stack.layout.record(name)) or {}
    since = datetime.fromisoformat(record.get("started_at") or datetime.now(UTC).isoformat()).astimezone()
    address = stack.addresses.get(f"{name}_http" if name.startswith("coordinator") else name, "")
    address = address.rsplit("@", 1)[-1]  # without a URL's user and password
    state = "running" if alive else "dead"
    return f"{name:<14}{state:<10}{running.identity.pid:>8}{megabytes:>10}  {since:%Y-%m-%d %H:%M:%S}   {address}"


def _options(chosen: argparse.Namespace) -> StackOptions:
    resources = ServerResources(
        chosen.server_cpu,
        chosen.server_network,
        chosen.server_storage_io,
        chosen.server_memory,
        chosen.server_disk,
    )
    return StackOptions.from_environment(
        state=chosen.state,
        servers=chosen.servers,
        coordinators=chosen.coordinators,
        workers=chosen.workers,
        probers=chosen.probers,
        bin_dir=chosen.bin_dir,
        profile=chosen.profile,
        observe=chosen.observe,
        prometheus_port=chosen.prometheus_port,
        api_port=chosen.api_port,
        coordinator_control_port=chosen.coordinator_port,
        coordinator_http_port=chosen.coordinator_http_port,
        postgres_port=chosen.postgres_port,
        redis_port=chosen.redis_port,
        server_port_base=chosen.server_ports,
        sends_mail=True,
        plaintext=chosen.plaintext,
        plaintext_links=chosen.plaintext_links,
        server_resources=resources,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="quorate-local", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    _add_start_options(_command(commands, "up", up, "start the whole stack"))
    runs = _command(commands, "run", run, "start a stack, run one command against it, stop it")
    _add_start_options(runs)
    runs.add_argument("argv", nargs="+", metavar="-- command …", help="gets QUORATE_API_URL")
    stops = _command(commands, "down", down, "stop it")
    stops.add_argument("--wipe", action="store_true", help="remove its state too")
    _command(commands, "status", status, "what runs")
    drains = _command(commands, "drain", drain, "move a server's replicas elsewhere, until it may stop")
    drains.add_argument("server", help="its name, for example s1")
    drains.add_argument("--cancel", action="store_true", help="cancel the drain; moved replicas stay in their places")
    drains.add_argument(
        "--timeout", type=float, default=3_600.0, metavar="S", help="seconds to wait (default %(default)s)"
    )
    shows = _command(commands, "logs", logs, "the ends of the logs")
    shows.add_argument("process", nargs="?", help="only this one, for example s1 or api")
    shows.add_argument("--follow", action="store_true", help="follow the log")
    shows.add_argument("--lines", type=int, default=20, help="lines of each (default %(default)s)")
    return parser


def _add_start_options(starts: argparse.ArgumentParser) -> None:
    starts.add_argument("--servers", type=int, default=SERVERS_DEFAULT, help="replica servers (default %(default)s)")
    starts.add_argument(
        "--coordinators", type=int, choices=COORDINATORS, default=1, help="coordinators (default %(default)s)"
    )
    starts.add_argument("--workers", type=int, default=1, help="workers of the API (default %(default)s)")
    starts.add_argument("--probers", type=int, default=1, help="probers that knock at servers (default %(default)s)")
    starts.add_argument("--bin-dir", type=Path, default=BINARIES, help="folder of the binaries")
    starts.add_argument("--profile", type=Path, help="cost profile for admission")
    for flag, what in [
        ("--api-port", "of the API and portal"),
        ("--prometheus-port", "of Prometheus, with --observe"),
        ("--coordinator-port", "of the coordinator for servers"),
        ("--coordinator-http-port", "of the coordinator for the API"),
        ("--postgres-port", "of the embedded PostgreSQL"),
        ("--redis-port", "of the embedded Redis"),
        ("--server-ports", "of server s1; s2 has the next one, and so on"),
    ]:
        starts.add_argument(flag, type=int, default=0, metavar="PORT", help=f"port {what} (default: any free one)")
    starts.add_argument("--observe", action="store_true", help="start Prometheus too, and try every alert on live data")
    starts.add_argument("--plaintext", action="store_true", help="accept clients and peers without TLS too")
    starts.add_argument("--plaintext-links", action="store_true", help="connect servers to one another without TLS")
    starts.add_argument("--server-cpu", type=float, metavar="CORES", help="CPU that each server announces")
    starts.add_argument("--server-network", type=int, metavar="BYTES_PER_S", help="network that each announces")
    starts.add_argument("--server-storage-io", type=int, metavar="PER_S", help="storage operations that each announces")
    starts.add_argument(
        "--server-memory", type=int, metavar="BYTES", help="memory of each; else its part of the machine's"
    )
    starts.add_argument("--server-disk", type=int, metavar="BYTES", help="disk of each; else its part of what is free")


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, run: object, text: str
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    command.add_argument("--state", type=Path, default=REPOSITORY / ".quorate", help="state folder (default .quorate)")
    command.set_defaults(run=run)
    return command


def _of_state(root: Path) -> str:
    """The argument of `make` that names this stack; empty for the usual one."""
    return "" if root == StackOptions().state.resolve() else f" STATE={_short(root)}"


def _short(path: Path) -> str:
    """The path, whole where the reader may stand elsewhere: `make` may have changed the folder."""
    relative = os.path.relpath(path)
    is_here = os.environ.get("PWD") == str(Path.cwd()) and not os.environ.get("MAKELEVEL")
    return relative if is_here and len(relative) < len(str(path)) else str(path.resolve())


if __name__ == "__main__":
    sys.exit(main())
