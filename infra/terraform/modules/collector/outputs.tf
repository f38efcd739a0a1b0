output "files" {
  description = "What cloud-init writes."
  value       = local.files
}

output "otlp_endpoint" {
  description = "Where it takes traces and metrics, from the machine itself."
  value       = "http://${yamldecode(local.config).receivers.otlp.protocols.http.endpoint}"
}
