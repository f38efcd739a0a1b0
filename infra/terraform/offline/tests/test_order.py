"""The order in which a fleet goes: a server is drained while its machine has all that it had, and others reach it.

Read from Terraform's graph: what depends on a thing is destroyed before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from conftest import Configuration

Copy = Callable[[str], Configuration]
SERVERS = "module.fleet.quorate_server.fleet"
MACHINES = {
    "azure": "azurerm_linux_virtual_machine.servers",
    "aws": "aws_instance.servers",
    "gcp": "google_compute_instance.servers",
}
# Without these nobody reaches a machine, or everybody does.
LETS_IN = re.compile(r"_(security_group_association|security_rule|ingress_rule|egress_rule|firewall)\.")


def depends_on(configuration: Configuration, what: str) -> tuple[set[str], set[str]]:
    """The resources on which `what` depends, directly or indirectly; and all resources."""
    said = configuration.run("graph")
    edges = re.findall(r'"([\w.-]+)" -> "([\w.-]+)";', said)
    found, new = set(), {what}
    while new:
        found |= new
        new = {to for start, to in edges if start in new} - found
    return found - {what}, set(re.findall(r'"([\w.-]+)" \[label=', said))


@pytest.mark.parametrize("cloud", MACHINES)
def test_a_server_is_drained_while_its_machine_has_everything(copy: Copy, cloud: str) -> None:
    reached, everything = depends_on(copy(f"envs/{cloud}").init(), SERVERS)
    of_machines = {resource for resource in everything if resource.startswith("module.machines.")}
    assert len(of_machines) > 5
    assert of_machines - reached == set()


@pytest.mark.parametrize(("module", "machine"), [*MACHINES.items(), ("control-plane", "aws_instance.control")])
def test_a_machine_is_never_without_what_lets_others_reach_it(copy: Copy, module: str, machine: str) -> None:
    reached, everything = depends_on(copy(f"modules/{module}").init(), machine)
    lets_in = {resource for resource in everything if LETS_IN.search(resource)}
    assert len(lets_in) > 1
    assert lets_in - reached == set()


def test_what_is_missing_would_be_noticed(copy: Copy) -> None:
    configuration = copy("modules/azure")
    forgotten = "azurerm_network_interface_security_group_association.servers"
    configuration.edit("main.tf", f"    {forgotten},\n", "")
    reached, everything = depends_on(configuration.init(), MACHINES["azure"])
    assert forgotten in everything - reached
