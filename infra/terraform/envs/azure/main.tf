# An example of a fleet in Azure, in a network of its own. The control plane is elsewhere: connect
# the networks, and give this one a way to the release.
#
# Credentials come from the environment: QUORATE_ENDPOINT, QUORATE_OPERATOR_TOKEN, and Azure's own.

terraform {
  required_version = ">= 1.9"
  required_providers {
    azurerm = { source = "hashicorp/azurerm", version = "~> 4.55" }
    quorate = { source = "quorate/quorate" }
  }
}

provider "azurerm" {
  subscription_id = var.subscription_id
  features {}
}

variable "subscription_id" {
  description = "Azure's id of the subscription."
  type        = string
}

variable "location" {
  description = "Azure's name of a region that has HB-series machines."
  type        = string
  default     = "westeurope"
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
  default     = ["az1", "az2", "az3", "az4", "az5"]
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

resource "azurerm_resource_group" "fleet" {
  name     = "quorate-fleet"
  location = var.location
}

resource "azurerm_virtual_network" "fleet" {
  name                = "quorate"
  resource_group_name = azurerm_resource_group.fleet.name
  location            = var.location
  address_space       = ["10.64.0.0/20"]
}

resource "azurerm_subnet" "servers" {
  name                 = "servers"
  resource_group_name  = azurerm_resource_group.fleet.name
  virtual_network_name = azurerm_virtual_network.fleet.name
  address_prefixes     = ["10.64.0.0/24"]
}

resource "quorate_join_token" "servers" {
  for_each = var.servers
  name     = each.key
}

module "machines" {
  source              = "../../modules/azure"
  name                = "quorate"
  resource_group_name = azurerm_resource_group.fleet.name
  location            = var.location
  subnet_id           = azurerm_subnet.servers.id
  servers             = { for name in var.servers : name => {} }
  join_tokens         = { for name, token in quorate_join_token.servers : name => token.token }
  coordinator         = var.coordinator
  release             = var.release
  region              = "azure-${var.location}"
  redis_url           = var.redis_url
  otlp_endpoint       = "http://127.0.0.1:4318" # the collector on each machine
  collector           = var.collector
  prometheus_cidrs    = var.prometheus_cidrs
  client_cidrs        = var.client_cidrs
  admin               = var.admin
}

module "fleet" {
  source    = "../../modules/fleet"
  instances = module.machines.instances
  rdma      = module.machines.rdma
  region    = "azure-${var.location}"
}

output "quorate_fleet" {
  value = module.fleet.quorate_fleet
}
