# The same file in every cloud's module: what a machine needs and a process on loopback does not.

variable "release" {
  description = "The program quorate-replica: an https address, and its SHA-256."
  type        = object({ url = string, sha256 = string })
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

variable "collector" {
  description = "OpenTelemetry's collector on each machine: the archive otelcol-contrib_VERSION_linux_ARCHITECTURE.tar.gz of its release 0.120 or newer, by https address and SHA-256, and where traces go, OTLP over https. It takes what is sent to `otlp_endpoint` http://127.0.0.1:4318. Null: none is installed."
  type        = object({ url = string, sha256 = string, traces_endpoint = string })
  default     = null
}

variable "prometheus_cidrs" {
  description = "Networks from which Prometheus scrapes the machines' collectors, on port 9464."
  type        = list(string)
  default     = []
}
