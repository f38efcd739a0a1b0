# A fleet on one machine, with a customer's project, group and key: all of Terraform's part, for trials.
#
# Credentials come from the environment: QUORATE_ENDPOINT, QUORATE_OPERATOR_TOKEN, QUORATE_API_KEY.

terraform {
  required_version = ">= 1.11"
  required_providers {
    quorate       = { source = "quorate/quorate" }
    quorate-local = { source = "quorate/quorate-local" }
  }
}

variable "server_count" {
  description = "Number of servers. After a decrease the last ones are drained, then stopped."
  type        = number
  default     = 4
}

variable "coordinator" {
  description = "The coordinator's control listener, host:port."
  type        = string
}

variable "server_binary" {
  description = "Absolute path of quorate-replica."
  type        = string
}

variable "state_dir" {
  description = "Absolute path of a folder for the servers."
  type        = string
}

variable "redis_url" {
  description = "Address of Redis, which takes usage and telemetry."
  type        = string
  default     = null
  sensitive   = true
}

variable "rate_per_s" {
  description = "Reserved appends of the group each second."
  type        = number
  default     = 500
}

locals {
  servers = { for number in range(var.server_count) : "s${number + 1}" => {} }
}

resource "quorate_join_token" "servers" {
  for_each = local.servers
  name     = each.key
}

module "machines" {
  source        = "../../modules/compute-local"
  name          = "local"
  servers       = local.servers
  join_tokens   = { for name, token in quorate_join_token.servers : name => token.token }
  coordinator   = var.coordinator
  region        = "local"
  server_binary = var.server_binary
  state_dir     = var.state_dir
  redis_url     = var.redis_url
}

module "fleet" {
  source                 = "../../modules/fleet"
  instances              = module.machines.instances
  rdma                   = module.machines.rdma
  region                 = "local"
  registration_timeout_s = 60
  drain_timeout_s        = 120
}

resource "quorate_project" "shop" {
  name = "shop"
}

resource "quorate_group" "orders" {
  project_id         = quorate_project.shop.id
  name               = "orders"
  durability         = "persistent"
  replication_degree = 3
  request_size_bytes = 64
  rate_per_s         = var.rate_per_s
  # This fleet is for trying out, and `terraform destroy` is to leave nothing. Elsewhere logs are protected by default.
  deletion_protection = false
  depends_on          = [module.fleet] # a fleet without servers promises nothing
}

resource "quorate_api_key" "app" {
  project_id = quorate_project.shop.id
  name       = "app"
  scopes     = ["append", "read"]
  lifecycle { create_before_destroy = true }
}

output "quorate_fleet" {
  value = module.fleet.quorate_fleet
}

output "group_id" {
  value = quorate_group.orders.id
}

output "api_key" {
  value     = quorate_api_key.app.secret
  sensitive = true
}
