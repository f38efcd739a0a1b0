# An example of a fleet in Google Cloud, in a network of its own. The control plane is elsewhere: connect
# the networks, and give this one a way to the release.
#
# Credentials come from the environment: QUORATE_ENDPOINT, QUORATE_OPERATOR_TOKEN, and Google's own.

terraform {
  required_version = ">= 1.9"
  required_providers {
    google  = { source = "hashicorp/google", version = "~> 6.50" }
    quorate = { source = "quorate/quorate" }
  }
}

provider "google" {
  project = var.project
}

variable "project" {
  description = "Google's name of the project."
  type        = string
}

variable "zone" {
  description = "A zone that has H4D machines."
  type        = string
  default     = "europe-west4-b"
}

variable "image" {
  description = "An image with systemd 247 or newer, cloud-init and the driver of H4D's RDMA interface."
  type        = string
}

locals {
  google_region = join("-", slice(split("-", var.zone), 0, 2))
}

variable "coordinator" {
  description = "The coordinator's control listener, host:port."
  type        = string
}

variable "redis_url" {
  description = "Address of Redis, which takes usage and telemetry."
  type        = string
  sensitive   = true
}

variable "release" {
  description = "The program quorate-replica: an https address, and its SHA-256."
  type        = object({ url = string, sha256 = string })
}

variable "admin" {
  description = "The user that may log in, its SSH key, and its networks."
  type        = object({ user = optional(string, "operator"), ssh_public_key = string, cidrs = optional(list(string), []) })
}

variable "servers" {
  description = "Names of the servers."
  type        = set(string)
  default     = ["gcp1", "gcp2", "gcp3", "gcp4", "gcp5"]
}

variable "collector" {
  description = "OpenTelemetry's collector on each machine: its release's archive by https address and SHA-256, and the trace store's address."
  type        = object({ url = string, sha256 = string, traces_endpoint = string })
}

variable "prometheus_cidrs" {
  description = "Networks from which Prometheus scrapes the machines' collectors."
  type        = list(string)
}

variable "client_cidrs" {
  description = "Networks of clients."
  type        = list(string)
}

resource "google_compute_network" "fleet" {
  name                    = "quorate"
  auto_create_subnetworks = false
}

resource "google_compute_subnetwork" "servers" {
  name                     = "quorate-servers"
  region                   = local.google_region
  network                  = google_compute_network.fleet.id
  ip_cidr_range            = "10.66.0.0/24"
  private_ip_google_access = true
}

resource "quorate_join_token" "servers" {
  for_each = var.servers
  name     = each.key
}

module "machines" {
  source           = "../../modules/gcp"
  name             = "quorate"
  project          = var.project
  zone             = var.zone
  network          = google_compute_network.fleet.id
  subnetwork       = google_compute_subnetwork.servers.id
  image            = var.image
  region           = "gcp-${local.google_region}"
  servers          = { for name in var.servers : name => {} }
  join_tokens      = { for name, token in quorate_join_token.servers : name => token.token }
  coordinator      = var.coordinator
  release          = var.release
  redis_url        = var.redis_url
  otlp_endpoint    = "http://127.0.0.1:4318" # the collector on each machine
  collector        = var.collector
  prometheus_cidrs = var.prometheus_cidrs
  client_cidrs     = var.client_cidrs
  admin            = var.admin
}

module "fleet" {
  source    = "../../modules/fleet"
  instances = module.machines.instances
  rdma      = module.machines.rdma
  region    = "gcp-${local.google_region}"
}

output "quorate_fleet" {
  value = module.fleet.quorate_fleet
}
