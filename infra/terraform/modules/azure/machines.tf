# Generated from infra/terraform/shared/machines.tf by `make gen`; do not edit.
# Inputs of every cloud's module. Machines need them, and processes on loopback do not.

variable "release" {
  description = "The program quorate-replica: an https address, and its SHA-256."
  type        = object({ url = string, sha256 = string })
}

variable "machine_type" {
  description = "The machines' size; null: the module's default, which has RDMA."
  type        = string
  default     = null
}

variable "data_disk_gb" {
  description = "Size of each server's disk for its journal and logs. It outlives its machine, and is deleted with the server."
  type        = number
  default     = 512
}

variable "port" {
  description = "Port on which the servers listen, for clients and for each other."
  type        = number
  default     = 7400
}

variable "client_cidrs" {
  description = "Networks of clients. The servers always reach each other."
  type        = list(string)
  default     = []
}

variable "admin" {
  description = "The user that may log in, its SSH key, and its networks. Without networks nobody can log in."
  type        = object({ user = optional(string, "operator"), ssh_public_key = string, cidrs = optional(list(string), []) })
  validation {
    condition     = alltrue([for cidr in var.admin.cidrs : can(cidrhost(cidr, 0)) && try(tonumber(split("/", cidr)[1]) >= 8, false)])
    error_message = "Each network of admins is a CIDR block of /8 or longer: a larger one is most of the internet."
  }
}

variable "collector" {
  description = "OpenTelemetry's collector on each machine: the archive otelcol-contrib_VERSION_linux_ARCHITECTURE.tar.gz of its release 0.120 or newer by https address and SHA-256, and the OTLP address for traces, https. It listens on http://127.0.0.1:4318, which `otlp_endpoint` must name. Null: none is installed."
  type        = object({ url = string, sha256 = string, traces_endpoint = string })
  default     = null
}

variable "prometheus_cidrs" {
  description = "Networks from which Prometheus scrapes the machines' collectors, on port 9464."
  type        = list(string)
  default     = []
}
