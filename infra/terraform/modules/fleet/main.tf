# The fleet's servers, whatever their machines are. Each depends on its machine, so that destroying drains first, and
# stops the machine once it holds nothing.

variable "instances" {
  description = "The machines' ids by server: the output `instances` of a module for machines."
  type        = map(string)
}

variable "rdma" {
  description = "What the machines have for RDMA: the output `rdma` of the same module."
  type        = object({ kind = string, device = optional(string), ordered = bool })
}

variable "region" {
  description = "The fleet's word for where the machines are."
  type        = string
}

variable "registration_timeout_s" {
  description = "How long a machine may take to start, to install the release and to register."
  type        = number
  default     = 900
}

variable "drain_timeout_s" {
  description = "How long a drain may take. After it destroying fails, the machine stays, and the drain goes on."
  type        = number
  default     = 3600
}

resource "quorate_server" "fleet" {
  for_each               = var.instances
  name                   = each.key
  instance_id            = each.value
  registration_timeout_s = var.registration_timeout_s
  drain_timeout_s        = var.drain_timeout_s
}

output "quorate_fleet" {
  description = "What programs may know of the fleet: as JSON, the contract with what Terraform does not manage."
  value = {
    version = 1 # a field that goes, or means something else, makes it 2; further fields do not
    region  = var.region
    rdma    = var.rdma
    servers = { for name, server in quorate_server.fleet : name => { id = server.server_id, address = server.address } }
  }
}
