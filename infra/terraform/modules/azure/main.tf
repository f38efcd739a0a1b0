# HB-series machines with InfiniBand. The machines of one availability set share an InfiniBand network, so that set is the
# placement group. The proximity placement group keeps it in one building.

locals {
  machine_type = coalesce(var.machine_type, "Standard_HB120rs_v3")
  machines     = { for name in keys(var.servers) : name => "${var.name}-${name}" }
}

resource "azurerm_proximity_placement_group" "fleet" {
  name                = var.name
  resource_group_name = var.resource_group_name
  location            = var.location
}

resource "azurerm_availability_set" "fleet" {
  name                         = var.name
  resource_group_name          = var.resource_group_name
  location                     = var.location
  proximity_placement_group_id = azurerm_proximity_placement_group.fleet.id
  platform_fault_domain_count  = var.fault_domains
  platform_update_domain_count = 20 # maintenance stops one of them at a time
}

resource "azurerm_application_security_group" "servers" {
  name                = "${var.name}-servers"
  resource_group_name = var.resource_group_name
  location            = var.location
}

resource "azurerm_network_security_group" "servers" {
  name                = "${var.name}-servers"
  resource_group_name = var.resource_group_name
  location            = var.location
}

resource "azurerm_network_security_rule" "peers" {
  name                                       = "peers"
  resource_group_name                        = var.resource_group_name
  network_security_group_name                = azurerm_network_security_group.servers.name
  priority                                   = 100
  direction                                  = "Inbound"
  access                                     = "Allow"
  protocol                                   = "Tcp"
  source_port_range                          = "*"
  source_application_security_group_ids      = [azurerm_application_security_group.servers.id]
  destination_port_range                     = tostring(var.port)
  destination_application_security_group_ids = [azurerm_application_security_group.servers.id]
}

resource "azurerm_network_security_rule" "inbound" {
  for_each = {
    for name, rule in {
      clients = { port = var.port, cidrs = var.client_cidrs, priority = 110 }
      admins  = { port = 22, cidrs = var.admin.cidrs, priority = 120 }
      metrics = { port = 9464, cidrs = var.prometheus_cidrs, priority = 130 }
    } : name => rule if length(rule.cidrs) > 0
  }
  name                                       = each.key
  resource_group_name                        = var.resource_group_name
  network_security_group_name                = azurerm_network_security_group.servers.name
  priority                                   = each.value.priority
  direction                                  = "Inbound"
  access                                     = "Allow"
  protocol                                   = "Tcp"
  source_port_range                          = "*"
  source_address_prefixes                    = each.value.cidrs
  destination_port_range                     = tostring(each.value.port)
  destination_application_security_group_ids = [azurerm_application_security_group.servers.id]
}

# Azure's own last rule admits the whole virtual network.
resource "azurerm_network_security_rule" "nobody_else" {
  name                        = "nobody-else"
  resource_group_name         = var.resource_group_name
  network_security_group_name = azurerm_network_security_group.servers.name
  priority                    = 4000
  direction                   = "Inbound"
  access                      = "Deny"
  protocol                    = "*"
  source_port_range           = "*"
  source_address_prefix       = "*"
  destination_port_range      = "*"
  destination_address_prefix  = "*"
}

resource "azurerm_network_interface" "servers" {
  for_each                       = local.machines
  name                           = each.value
  resource_group_name            = var.resource_group_name
  location                       = var.location
  accelerated_networking_enabled = true
  ip_configuration {
    name                          = "servers"
    subnet_id                     = var.subnet_id
    private_ip_address_allocation = "Dynamic" # the address stays with the interface, which outlives the machine
  }
}

resource "azurerm_network_interface_security_group_association" "servers" {
  for_each                  = local.machines
  network_interface_id      = azurerm_network_interface.servers[each.key].id
  network_security_group_id = azurerm_network_security_group.servers.id
}

resource "azurerm_network_interface_application_security_group_association" "servers" {
  for_each                      = local.machines
  network_interface_id          = azurerm_network_interface.servers[each.key].id
  application_security_group_id = azurerm_application_security_group.servers.id
}

module "machine" {
  source         = "../machine"
  for_each       = var.servers
  name           = each.key
  coordinator    = var.coordinator
  join_token     = var.join_tokens[each.key]
  release        = var.release
  listen         = "${azurerm_network_interface.servers[each.key].private_ip_address}:${var.port}"
  region         = var.region
  failure_domain = each.value.failure_domain
  capacity       = var.capacity
  redis_url      = var.redis_url
  otlp_endpoint  = var.otlp_endpoint
  collector      = var.collector
  data_device    = "/dev/disk/azure/scsi1/lun0"
  ofi_provider   = "verbs"
  transport      = var.transport
}

resource "azurerm_linux_virtual_machine" "servers" {
  for_each              = local.machines
  name                  = each.value
  resource_group_name   = var.resource_group_name
  location              = var.location
  size                  = local.machine_type
  availability_set_id   = azurerm_availability_set.fleet.id
  network_interface_ids = [azurerm_network_interface.servers[each.key].id]
  admin_username        = var.admin.user
  custom_data           = base64encode(module.machine[each.key].user_data)

  admin_ssh_key {
    username   = var.admin.user
    public_key = var.admin.ssh_public_key
  }
  os_disk {
    caching              = "ReadWrite"
    storage_account_type = "Premium_LRS"
  }
  source_image_reference {
    publisher = var.image.publisher
    offer     = var.image.offer
    sku       = var.image.sku
    version   = var.image.version
  }
  # The firewall rules exist before the machine, and are deleted after it.
  depends_on = [
    azurerm_network_interface_security_group_association.servers,
    azurerm_network_interface_application_security_group_association.servers,
    azurerm_network_security_rule.peers,
    azurerm_network_security_rule.inbound,
    azurerm_network_security_rule.nobody_else,
  ]
  lifecycle {
    # Only the first start reads it. A new release or token must not replace serving machines.
    ignore_changes = [custom_data, source_image_reference]
  }
}

resource "azurerm_managed_disk" "data" {
  for_each             = local.machines
  name                 = "${each.value}-data"
  resource_group_name  = var.resource_group_name
  location             = var.location
  storage_account_type = "Premium_LRS" # an availability set takes no second version of Premium SSD; speed comes with size
  create_option        = "Empty"
  disk_size_gb         = var.data_disk_gb
}

resource "azurerm_virtual_machine_data_disk_attachment" "data" {
  for_each           = local.machines
  managed_disk_id    = azurerm_managed_disk.data[each.key].id
  virtual_machine_id = azurerm_linux_virtual_machine.servers[each.key].id
  lun                = 0
  caching            = "None"
}
