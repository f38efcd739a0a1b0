output "instances" {
  description = "The machines' ids, by server: what a fleet's servers depend on."
  value       = { for name, machine in google_compute_instance.servers : name => machine.id }
}

output "addresses" {
  description = "Where clients and peers reach the servers, by server."
  value       = { for name, address in google_compute_address.servers : name => "${address.address}:${var.port}" }
}

output "rdma" {
  description = "What the machines have for RDMA. device: its name, or null where that differs by machine; ordered: what is sent arrives in order."
  value       = { kind = "falcon", device = null, ordered = true }
}
