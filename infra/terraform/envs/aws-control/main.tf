# An example of a control plane in AWS, with a network that a fleet in the same region shares (envs/aws).
#
# Credentials come from the environment: AWS's own. TF_VAR_database_password is the database's password, and
# TF_VAR_keys_seed the seed of all keys (`openssl rand -hex 32`).

terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = { source = "hashicorp/aws", version = "~> 6.25" }
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

variable "zones" {
  description = "Three zones of the region: a machine of the control plane in each. The fleet is in the first."
  type        = list(string)
  default     = ["eu-north-1b", "eu-north-1a", "eu-north-1c"]
  validation {
    condition     = length(var.zones) == 3
    error_message = "Three zones: the control plane goes on without any one of them."
  }
}

variable "public_url" {
  description = "The API's address, https://…"
  type        = string
}

variable "certificate_arn" {
  description = "The certificate of the address's name."
  type        = string
}

variable "image_id" {
  description = "An image of Debian 12."
  type        = string
}

variable "traces_endpoint" {
  description = "The trace store's OTLP address, https."
  type        = string
}

variable "settings" {
  description = "Further settings of API and worker, such as QUORATE_MAIL: docs/internals/processes.md."
  type        = map(string)
  default     = {}
}

variable "secret_files" {
  description = "Files for settings that name one, by their names: each is /etc/quorate/files/NAME."
  type        = map(string)
  default     = {}
  sensitive   = true
}

variable "releases" {
  description = "Releases to install, with the SHA-256 that `make release` wrote."
  type = object({
    coordinator = object({ url = string, sha256 = string })
    api         = object({ url = string, sha256 = string })
    collector   = object({ url = string, sha256 = string })
  })
}

variable "database_password" {
  description = "Password of PostgreSQL's owner."
  type        = string
  sensitive   = true
}

variable "keys_seed" {
  description = "Seed of the keys that the machines of the control plane share."
  type        = string
  sensitive   = true
}

locals {
  network = "10.65.0.0/20"
  subnets = {
    private-0 = { cidr = "10.65.1.0/24", zone = var.zones[0] }
    private-1 = { cidr = "10.65.2.0/24", zone = var.zones[1] }
    private-2 = { cidr = "10.65.5.0/24", zone = var.zones[2] }
    public-0  = { cidr = "10.65.3.0/24", zone = var.zones[0] }
    public-1  = { cidr = "10.65.4.0/24", zone = var.zones[1] }
    servers   = { cidr = "10.65.8.0/22", zone = var.zones[0] }
  }
}

resource "aws_vpc" "quorate" {
  cidr_block           = local.network
  enable_dns_hostnames = true
  tags                 = { Name = "quorate" }
}

resource "aws_subnet" "quorate" {
  for_each          = local.subnets
  vpc_id            = aws_vpc.quorate.id
  availability_zone = each.value.zone
  cidr_block        = each.value.cidr
  tags              = { Name = "quorate-${each.key}" }
}

resource "aws_internet_gateway" "quorate" {
  vpc_id = aws_vpc.quorate.id
}

resource "aws_eip" "nat" {
  domain = "vpc"
}

# The way out for private machines: to releases, packages and telemetry.
resource "aws_nat_gateway" "quorate" {
  subnet_id     = aws_subnet.quorate["public-0"].id
  allocation_id = aws_eip.nat.id
  depends_on    = [aws_internet_gateway.quorate]
}

resource "aws_route_table" "quorate" {
  for_each = toset(["public", "private"])
  vpc_id   = aws_vpc.quorate.id
  tags     = { Name = "quorate-${each.key}" }
}

resource "aws_route" "public" {
  route_table_id         = aws_route_table.quorate["public"].id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.quorate.id
}

resource "aws_route" "private" {
  route_table_id         = aws_route_table.quorate["private"].id
  destination_cidr_block = "0.0.0.0/0"
  nat_gateway_id         = aws_nat_gateway.quorate.id
}

resource "aws_route_table_association" "quorate" {
  for_each       = local.subnets
  subnet_id      = aws_subnet.quorate[each.key].id
  route_table_id = aws_route_table.quorate[startswith(each.key, "public") ? "public" : "private"].id
}

module "control_plane" {
  source             = "../../modules/control-plane"
  name               = "quorate"
  vpc_id             = aws_vpc.quorate.id
  private_subnet_ids = [for key in ["private-0", "private-1", "private-2"] : aws_subnet.quorate[key].id]
  public_subnet_ids  = [for key in ["public-0", "public-1"] : aws_subnet.quorate[key].id]
  availability_zones = var.zones
  server_cidrs       = [local.subnets.servers.cidr]
  public_url         = var.public_url
  certificate_arn    = var.certificate_arn
  image_id           = var.image_id
  traces_endpoint    = var.traces_endpoint
  releases           = var.releases
  database_password  = var.database_password
  keys_seed          = var.keys_seed
  settings           = var.settings
  secret_files       = var.secret_files
  depends_on         = [aws_route.private] # the machines install releases at their start
}

output "for_the_fleet" {
  description = "Inputs of envs/aws."
  value = {
    vpc_id            = aws_vpc.quorate.id
    subnet_id         = aws_subnet.quorate["servers"].id
    availability_zone = var.zones[0]
    coordinator       = module.control_plane.coordinator
  }
}

output "redis_url" {
  value     = module.control_plane.redis_url
  sensitive = true
}

output "balancer" {
  description = "Address to which the name of `public_url` must resolve."
  value       = module.control_plane.balancer
}
