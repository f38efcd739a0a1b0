output "instances" {
  description = "The servers' ids, by server. A fleet's servers depend on them."
  value       = { for name, server in quorate_local_server.servers : name => server.id }
}

output "addresses" {
  description = "The servers' addresses for clients and peers, by server."
  value       = { for name, server in quorate_local_server.servers : name => server.address }
}

output "rdma" {
  description = "Loopback has no RDMA."
  value       = { kind = "none", device = null, ordered = false }
}
