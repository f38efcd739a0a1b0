output "instances" {
  description = "The servers' ids, by server: what a fleet's servers depend on."
  value       = { for name, server in quorate_local_server.servers : name => server.id }
}

output "addresses" {
  description = "Where clients and peers reach the servers, by server."
  value       = { for name, server in quorate_local_server.servers : name => server.address }
}

output "rdma" {
  description = "Loopback has no RDMA."
  value       = { kind = "none", device = null, ordered = false }
}
