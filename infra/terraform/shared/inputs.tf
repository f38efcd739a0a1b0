# Inputs of every module for machines. A fleet moves to another cloud by another `source` and that cloud's own inputs.

variable "name" {
  description = "The fleet's name. Machines are named FLEET-SERVER."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,23}$", var.name))
    error_message = "A fleet's name has at most 24 small letters, digits and dashes, and begins with a letter."
  }
}

variable "servers" {
  description = "The fleet's servers, by name. Each is one machine. All are in one placement group."
  type        = map(object({ failure_domain = optional(string) }))
  validation {
    condition     = alltrue([for name in keys(var.servers) : can(regex("^[a-z][a-z0-9-]{0,22}[a-z0-9]$", name))])
    error_message = "A server's name has 2 to 24 small letters, digits and dashes, and begins with a letter."
  }
}

variable "join_tokens" {
  description = "A join token for each server, by the server's name."
  type        = map(string)
  sensitive   = true
  validation {
    condition     = toset(nonsensitive(keys(var.join_tokens))) == toset(keys(var.servers))
    error_message = "There must be one join token for each server, and no other."
  }
}

variable "coordinator" {
  description = "The coordinators' control listeners: host:port of each, with commas."
  type        = string
}

variable "region" {
  description = "The fleet's name of the machines' place, which customers name in their groups."
  type        = string
}

variable "capacity" {
  description = "Capacity of each machine that admission may promise, and its threads; null: the server's default."
  type = object({
    shards              = optional(number)
    cpu                 = optional(number)
    network_bytes_per_s = optional(number)
    storage_io_per_s    = optional(number)
  })
  default = {}
}

variable "redis_url" {
  description = "Address of Redis, which takes usage and telemetry. Without it no usage is billed."
  type        = string
  default     = null
  sensitive   = true
}

variable "otlp_endpoint" {
  description = "Address of a collector on each machine, http; null: no traces and metrics are exported."
  type        = string
  default     = null
}

variable "transport" {
  description = "How frames travel between servers: tcp, with TLS; or ofi, by one-sided writes of the machines' RDMA, which are not encrypted. A server whose test of them fails uses tcp."
  type        = string
  default     = "tcp"
  validation {
    condition     = contains(["tcp", "ofi"], var.transport)
    error_message = "A transport is tcp or ofi."
  }
}
