variable "name" {
  description = "Prefix of every resource's name."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,18}[a-z0-9]$", var.name))
    error_message = "A name has 2 to 20 small letters, digits and dashes, and begins with a letter."
  }
}

variable "vpc_id" {
  description = "The network."
  type        = string
}

variable "private_subnet_ids" {
  description = "Subnets of the databases, in at least two zones. The machines are in the first ones, in the order of `availability_zones`."
  type        = list(string)
  validation {
    condition     = length(var.private_subnet_ids) >= 2
    error_message = "AWS requires a database's subnets in two zones."
  }
}

variable "public_subnet_ids" {
  description = "Subnets of the load balancer, in at least two zones."
  type        = list(string)
  validation {
    condition     = length(var.public_subnet_ids) >= 2
    error_message = "AWS requires a load balancer's subnets in two zones."
  }
}

variable "availability_zones" {
  description = "Zones of the first private subnets, in their order: a machine with its disk in each. Three; or one, to try it."
  type        = list(string)
  validation {
    condition     = contains([1, 3, 5], length(var.availability_zones)) && length(distinct(var.availability_zones)) == length(var.availability_zones)
    error_message = "One, three or five zones, each once: coordinators decide by majority, and the loss of a zone should cost one of them."
  }
  validation {
    condition     = length(var.availability_zones) <= length(var.private_subnet_ids)
    error_message = "Each of these zones needs its private subnet."
  }
}

variable "keys_seed" {
  description = "Seed of the keys that all machines have, 64 hexadecimal digits: `openssl rand -hex 32`. Keep it: a replacement machine needs the same. Terraform's state holds it."
  type        = string
  sensitive   = true
}

variable "server_cidrs" {
  description = "Networks of the replica servers, which reach the coordinators and Redis."
  type        = list(string)
}

variable "prometheus_cidrs" {
  description = "Networks from which Prometheus scrapes the machines' collectors, on port 9464."
  type        = list(string)
  default     = []
}

variable "public_cidrs" {
  description = "Networks that reach the API and the portal."
  type        = list(string)
  default     = ["0.0.0.0/0"]
}

variable "public_url" {
  description = "The API's address, https://…. Its name must resolve to the load balancer."
  type        = string
  validation {
    condition     = can(regex("^https://[A-Za-z0-9.-]+$", var.public_url))
    error_message = "It is https:// and a name, without a path."
  }
}

variable "certificate_arn" {
  description = "The certificate of that name, in AWS's certificate manager."
  type        = string
}

variable "image_id" {
  description = "An image with Python 3.11, cloud-init and systemd 247 or newer: Debian 12's."
  type        = string
}

variable "machine_type" {
  description = "The machines of coordinator, API and worker."
  type        = string
  default     = "m7a.large"
}

variable "ssh_key_name" {
  description = "An EC2 key pair for admins, who connect through the servers' networks; null: nobody logs in."
  type        = string
  default     = null
}

variable "releases" {
  description = "Releases to install, each by https address and SHA-256: the program quorate-coordinator, the archive quorate-api.tar.gz, and the archive otelcol-contrib_VERSION_linux_ARCHITECTURE.tar.gz of the collector's release 0.120 or newer."
  type = object({
    coordinator = object({ url = string, sha256 = string })
    api         = object({ url = string, sha256 = string })
    collector   = object({ url = string, sha256 = string })
  })
}

variable "traces_endpoint" {
  description = "The trace store's OTLP address, https. Prometheus scrapes the metrics."
  type        = string
}

variable "database_password" {
  description = "Password of PostgreSQL's owner. Terraform's state holds it."
  type        = string
  sensitive   = true
  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{24,}$", var.database_password))
    error_message = "At least 24 letters, digits, dashes and underscores."
  }
}

variable "database_type" {
  description = "Size of PostgreSQL's two machines, in two zones."
  type        = string
  default     = "db.m7g.large"
}

variable "redis_type" {
  description = "Size of Redis's two machines, in two zones."
  type        = string
  default     = "cache.m7g.large"
}

variable "settings" {
  description = "Further settings of API and worker by their names, such as QUORATE_MAIL: docs/internals/processes.md. Those that the module makes itself are not among them."
  type        = map(string)
  default     = {}
  validation {
    condition     = alltrue([for name, value in var.settings : can(regex("^QUORATE_[A-Z0-9_]+$", name)) && can(regex("^[!#-\\[\\]-~ ]*$", value))])
    error_message = "A name is QUORATE_ and capitals; a value has no quotes, backslashes or line breaks, as systemd reads it."
  }
}

variable "secret_files" {
  description = "Files for settings that name one, by their names: each is /etc/quorate/files/NAME, for the API's account alone. Terraform's state holds them."
  type        = map(string)
  default     = {}
  sensitive   = true
  validation {
    condition     = alltrue([for name in nonsensitive(keys(var.secret_files)) : can(regex("^[a-z0-9][a-z0-9.-]*$", name))])
    error_message = "A name has small letters, digits, dots and dashes."
  }
}
