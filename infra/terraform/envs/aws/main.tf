# An example of a fleet in AWS, in the control plane's network (envs/aws-control).
#
# Credentials come from the environment: QUORATE_ENDPOINT, QUORATE_OPERATOR_TOKEN, and AWS's own.

terraform {
  required_version = ">= 1.9"
  required_providers {
    aws     = { source = "hashicorp/aws", version = "~> 6.25" }
    quorate = { source = "quorate/quorate" }
  }
}

provider "aws" {
  region = var.aws_region
}

variable "aws_region" {
  description = "AWS's name of the region."
  type        = string
  default     = "eu-north-1"
}

variable "vpc_id" {
  description = "The network: `for_the_fleet.vpc_id` of the control plane."
  type        = string
}

variable "subnet_id" {
  description = "The servers' subnet: `for_the_fleet.subnet_id`."
  type        = string
}

variable "availability_zone" {
  description = "The subnet's zone, which must offer the machine type: `for_the_fleet.availability_zone`."
  type        = string
  default     = "eu-north-1b"
}

variable "image_id" {
  description = "An image with systemd 247 or newer, cloud-init and EFA's driver."
  type        = string
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
  default     = ["aws1", "aws2", "aws3", "aws4", "aws5"]
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

resource "quorate_join_token" "servers" {
  for_each = var.servers
  name     = each.key
}

module "machines" {
  source            = "../../modules/aws"
  name              = "quorate"
  vpc_id            = var.vpc_id
  subnet_id         = var.subnet_id
  availability_zone = var.availability_zone
  image_id          = var.image_id
  region            = "aws-${var.aws_region}"
  servers           = { for name in var.servers : name => {} }
  join_tokens       = { for name, token in quorate_join_token.servers : name => token.token }
  coordinator       = var.coordinator
  release           = var.release
  redis_url         = var.redis_url
  otlp_endpoint     = "http://127.0.0.1:4318" # the collector on each machine
  collector         = var.collector
  prometheus_cidrs  = var.prometheus_cidrs
  client_cidrs      = var.client_cidrs
  admin             = var.admin
}

module "fleet" {
  source    = "../../modules/fleet"
  instances = module.machines.instances
  rdma      = module.machines.rdma
  region    = "aws-${var.aws_region}"
}

output "quorate_fleet" {
  value = module.fleet.quorate_fleet
}
