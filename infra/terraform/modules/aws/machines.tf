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
