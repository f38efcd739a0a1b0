variable "project" {
  description = "Google's name of the project."
  type        = string
}

variable "zone" {
  description = "The zone of the machines. It must have H4D machines and their network profile."
  type        = string
  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+-[a-z]$", var.zone))
    error_message = "A zone is like europe-west4-b."
  }
}

variable "network" {
  description = "The ordinary network of the subnetwork."
  type        = string
}

variable "subnetwork" {
  description = "The machines' subnetwork, in the zone's region. It must reach the coordinator, Redis and the release."
  type        = string
}

variable "rdma_cidr" {
  description = "Addresses for the RDMA interfaces, in a network of their own."
  type        = string
  default     = "192.168.64.0/24"
}

variable "image" {
  description = "An image with systemd 247 or newer, cloud-init and the driver of H4D's RDMA interface."
  type        = string
}

variable "data_disk_speed" {
  description = "Operations and MB each data disk does a second."
  type        = object({ iops = number, mb_per_s = number })
  default     = { iops = 16000, mb_per_s = 1000 }
}
