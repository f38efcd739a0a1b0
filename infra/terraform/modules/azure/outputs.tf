output "instances" {
  description = "The machines' ids, by server. A fleet's servers depend on them."
  value       = { for name, machine in azurerm_linux_virtual_machine.servers : name => machine.id }
  # A server registers and drains while its machine has its disk. The machine depends on its firewall rules.
  depends_on = [azurerm_virtual_machine_data_disk_attachment.data]
}

output "addresses" {
  description = "The servers' addresses for clients and peers, by server."
  value       = { for name, nic in azurerm_network_interface.servers : name => "${nic.private_ip_address}:${var.port}" }
}

output "rdma" {
  description = "The machines' RDMA. device: its name, or null if it differs by machine; ordered: messages arrive in the order of sending."
  value       = { kind = "infiniband", device = "mlx5_ib0", ordered = true }
}
