mock_provider "azurerm" {
  mock_resource "azurerm_network_interface" {
    defaults = { private_ip_address = "10.4.0.4" }
  }
}

variables {
  name        = "prod"
  servers     = { s1 = {}, s2 = {}, s3 = { failure_domain = "rack-7" } }
  join_tokens = { s1 = "qjt_one", s2 = "qjt_two", s3 = "qjt_three" }
  coordinator = "coordinator.internal:7300"
  region      = "eu"
  release = {
    url    = "https://releases.example.com/quorate-replica"
    sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  }
  admin = { ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1dCBub3QgYSByZWFsIGtleSBhdCBhbGwhISE operator" }

  resource_group_name = "quorate"
  location            = "westeurope"
  subnet_id           = "/subscriptions/0/resourceGroups/quorate/providers/Microsoft.Network/virtualNetworks/v/subnets/servers"
}

run "a_fleet" {
  assert {
    condition     = toset(keys(output.instances)) == toset(["s1", "s2", "s3"])
    error_message = "every server has one machine"
  }
  assert {
    condition     = alltrue([for name, id in output.instances : id == azurerm_linux_virtual_machine.servers[name].id])
    error_message = "instances are the machines' ids"
  }
  assert {
    condition     = alltrue([for machine in azurerm_linux_virtual_machine.servers : machine.availability_set_id == azurerm_availability_set.fleet.id])
    error_message = "one InfiniBand network: all machines are in one availability set"
  }
  assert {
    condition     = azurerm_availability_set.fleet.proximity_placement_group_id == azurerm_proximity_placement_group.fleet.id
    error_message = "the set is kept in one building"
  }
  assert {
    condition     = alltrue([for machine in azurerm_linux_virtual_machine.servers : startswith(machine.size, "Standard_HB") && strcontains(machine.size, "rs_")])
    error_message = "an r in the size means RDMA"
  }
  assert {
    condition     = alltrue([for machine in azurerm_linux_virtual_machine.servers : startswith(base64decode(machine.custom_data), "#cloud-config\n")])
    error_message = "the machines get cloud-init's configuration"
  }
  assert {
    condition     = strcontains(base64decode(azurerm_linux_virtual_machine.servers["s2"].custom_data), "qjt_two") && !strcontains(base64decode(azurerm_linux_virtual_machine.servers["s2"].custom_data), "qjt_one")
    error_message = "each machine gets its own join token and no other's"
  }
  assert {
    condition     = keys(azurerm_network_security_rule.inbound) == []
    error_message = "only the named networks are admitted"
  }
  assert {
    condition     = azurerm_network_security_rule.nobody_else.access == "Deny" && azurerm_network_security_rule.nobody_else.priority < 65000
    error_message = "Azure's rule for the whole virtual network comes after ours"
  }
  assert {
    condition     = output.rdma.kind == "infiniband" && output.rdma.ordered
    error_message = "InfiniBand's reliable connections keep the order"
  }
}

run "clients_and_admins" {
  variables {
    client_cidrs = ["10.9.0.0/16"]
    admin        = { ssh_public_key = "ssh-ed25519 AAAA operator", cidrs = ["192.0.2.0/24"] }

    prometheus_cidrs = ["10.8.0.0/24"]
  }
  assert {
    condition     = { for name, rule in azurerm_network_security_rule.inbound : name => rule.destination_port_range } == { clients = "7400", admins = "22", metrics = "9464" }
    error_message = "clients reach the servers, admins SSH, Prometheus the collectors"
  }
  assert {
    condition     = azurerm_network_security_rule.inbound["admins"].source_address_prefixes == toset(["192.0.2.0/24"])
    error_message = "admins connect from the named networks"
  }
}

run "one_token_for_each_server" {
  command = plan
  variables { join_tokens = { s1 = "qjt_one" } }
  expect_failures = [var.join_tokens]
}

run "names_fit_into_machines_names" {
  command = plan
  variables {
    servers     = { "S 1" = {} }
    join_tokens = { "S 1" = "qjt_one" }
  }
  expect_failures = [var.servers]
}

run "no_admins_from_everywhere" {
  command = plan
  variables {
    admin = {
      ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1dCBub3QgYSByZWFsIGtleSBhdCBhbGwhISE operator"
      cidrs          = ["10.0.0.0/8", "0.0.0.0/0"]
    }
  }
  expect_failures = [var.admin]
}
