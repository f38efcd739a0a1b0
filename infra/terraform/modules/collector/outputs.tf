output "files" {
  description = "Files that cloud-init writes."
  value       = local.files
}

output "otlp_endpoint" {
  description = "Address for traces and metrics, reachable from the machine itself only."
  value       = "http://${yamldecode(local.config).receivers.otlp.protocols.http.endpoint}"
}
