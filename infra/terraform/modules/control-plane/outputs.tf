output "coordinator" {
  description = "For the modules for machines: the coordinator's control listener."
  value       = "${aws_network_interface.control.private_ip}:${local.ports.coordinator}"
}

output "redis_url" {
  description = "For the modules for machines: where usage and telemetry go."
  value       = local.redis_url
  sensitive   = true
}

output "balancer" {
  description = "Where the name of `public_url` must lead."
  value       = aws_lb.api.dns_name
}
