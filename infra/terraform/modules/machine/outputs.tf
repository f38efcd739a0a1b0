output "user_data" {
  description = "User data for cloud-init. It holds the join token."
  value       = "#cloud-config\n${yamlencode(local.cloud_config)}"
  sensitive   = true
}
