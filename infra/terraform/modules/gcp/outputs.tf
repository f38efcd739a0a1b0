output "instances" {
  description = "The machines' ids, by server. A fleet's servers depend on them."
  value       = { for name, machine in google_compute_instance.servers : name => machine.id }
}

output "addresses" {
  description = "The servers' addresses for clients and peers, by server."
  value       = { for name, address in google_compute_address.servers : name => "${address.address}:${var.port}" }
}

output "rdma" {
  description = "The machines' RDMA. device: its name, or null if it differs by machine; ordered: messages arrive in the order of sending."
  value       = { kind = "falcon", device = null, ordered = true }
}
