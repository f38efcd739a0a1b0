# The fleet's servers, on machines of any module. Each depends on its machine, so that destroying drains the server
# first, and stops the machine when it holds no replica.

variable "instances" {
  description = "The machines' ids by server: the output `instances` of a module for machines."
  type        = map(string)
}

variable "rdma" {
  description = "The machines' RDMA: the output `rdma` of the same module."
  type        = object({ kind = string, device = optional(string), ordered = bool })
}

variable "region" {
  description = "The fleet's name of the machines' place."
  type        = string
}

variable "registration_timeout_s" {
  description = "Bound on a machine's start, installation of the release and registration."
  type        = number
  default     = 900
}

variable "drain_timeout_s" {
  description = "Bound on a drain. After it destroying fails, the machine stays, and the drain continues."
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
  description = "The fleet for other programs. As JSON it is the contract with everything that Terraform does not manage."
  value = {
    version = 1 # removing a field, or changing its meaning, makes it 2; new fields do not
    region  = var.region
    rdma    = var.rdma
    servers = { for name, server in quorate_server.fleet : name => { id = server.server_id, address = server.address } }
  }
}
