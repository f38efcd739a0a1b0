output "instances" {
  description = "The machines' ids, by server: what a fleet's servers depend on."
  value       = { for name, machine in azurerm_linux_virtual_machine.servers : name => machine.id }
  # A server is waited for, and drained, while its machine has its disk; what lets others reach it the machine depends on.
  depends_on = [azurerm_virtual_machine_data_disk_attachment.data]
}

output "addresses" {
  description = "Where clients and peers reach the servers, by server."
  value       = { for name, nic in azurerm_network_interface.servers : name => "${nic.private_ip_address}:${var.port}" }
}

output "rdma" {
  description = "What the machines have for RDMA. device: its name, or null where that differs by machine; ordered: what is sent arrives in order."
  value       = { kind = "infiniband", device = "mlx5_ib0", ordered = true }
}
