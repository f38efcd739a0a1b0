output "coordinator" {
  description = "The coordinators' control listeners, for the modules for machines."
  value       = join(",", [for address in local.addresses : "${address}:${local.ports.coordinator}"])
}

output "redis_url" {
  description = "Address of Redis for usage and telemetry, for the modules for machines."
  value       = local.redis_url
  sensitive   = true
}

output "balancer" {
  description = "Address to which the name of `public_url` must resolve."
  value       = aws_lb.api.dns_name
}
