output "coordinator" {
  description = "The coordinator's control listener, for the modules for machines."
  value       = "${aws_network_interface.control.private_ip}:${local.ports.coordinator}"
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
