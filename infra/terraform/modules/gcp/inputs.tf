# The same file in every cloud's module: a fleet moves between clouds by another `source`, and what is that cloud's own.

variable "name" {
  description = "The fleet's name; machines are called by it and by their server's name."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,23}$", var.name))
    error_message = "A fleet's name has at most 24 small letters, digits and dashes, and begins with a letter."
  }
}

variable "servers" {
  description = "The fleet's servers, by name. Each is one machine; all are in one placement group."
  type        = map(object({ failure_domain = optional(string) }))
  validation {
    condition     = alltrue([for name in keys(var.servers) : can(regex("^[a-z][a-z0-9-]{0,22}[a-z0-9]$", name))])
    error_message = "A server's name has 2 to 24 small letters, digits and dashes, and begins with a letter."
  }
}

variable "join_tokens" {
  description = "A join token for each server, by its name."
  type        = map(string)
  sensitive   = true
  validation {
    condition     = toset(nonsensitive(keys(var.join_tokens))) == toset(keys(var.servers))
    error_message = "There must be one join token for each server, and no other."
  }
}

variable "coordinator" {
  description = "The coordinator's control listener, host:port."
  type        = string
}

variable "release" {
  description = "The program quorate-replica: an https address, and its SHA-256."
  type        = object({ url = string, sha256 = string })
}

variable "region" {
  description = "The fleet's word for where these machines are, which customers name in their groups."
  type        = string
}

variable "machine_type" {
  description = "The machines' size; null: the module's choice, which has RDMA."
  type        = string
  default     = null
}

variable "data_disk_gb" {
  description = "Size of each server's disk for its journal and logs. It outlives its machine, and goes with the server."
  type        = number
  default     = 512
}

variable "capacity" {
  description = "What admission may promise of each machine, and its threads; null leaves the server's default."
  type = object({
    shards              = optional(number)
    cpu                 = optional(number)
    network_bytes_per_s = optional(number)
    storage_io_per_s    = optional(number)
  })
  default = {}
}

variable "port" {
  description = "Where the servers listen, for clients and for each other."
  type        = number
  default     = 7400
}

variable "client_cidrs" {
  description = "Networks from which clients come. The servers always reach each other."
  type        = list(string)
  default     = []
}

variable "admin" {
  description = "Who may log in: a user's name, an SSH key, and the networks from which. Without networks nobody can."
  type        = object({ user = optional(string, "operator"), ssh_public_key = string, cidrs = optional(list(string), []) })
}

variable "redis_url" {
  description = "Where usage and telemetry go. Without it no usage is billed."
  type        = string
  default     = null
  sensitive   = true
}

variable "otlp_endpoint" {
  description = "A collector on each machine, http; null: no traces and metrics are exported."
  type        = string
  default     = null
}
