output "instances" {
  description = "The machines' ids, by server: what a fleet's servers depend on."
  value       = { for name, machine in aws_instance.servers : name => machine.id }
  # A server is waited for, and drained, while its machine has its disk; what lets others reach it the machine depends on.
  depends_on = [aws_volume_attachment.data]
}

output "addresses" {
  description = "Where clients and peers reach the servers, by server."
  value       = { for name, nic in aws_network_interface.servers : name => "${nic.private_ip}:${var.port}" }
}

output "rdma" {
  description = "What the machines have for RDMA. device: its name, or null where that differs by machine; ordered: what is sent arrives in order."
  value       = { kind = "efa", device = null, ordered = false }
}
