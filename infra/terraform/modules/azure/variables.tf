variable "resource_group_name" {
  description = "The resource group in which everything is made."
  type        = string
}

variable "location" {
  description = "Azure's name of the region."
  type        = string
}

variable "subnet_id" {
  description = "The subnet of the machines; it must reach the coordinator, Redis and the release."
  type        = string
}

variable "image" {
  description = "An image with systemd 247 or newer, cloud-init and the drivers of InfiniBand. Name a version, so that machines are alike."
  type        = object({ publisher = string, offer = string, sku = string, version = string })
  default     = { publisher = "microsoft-dsvm", offer = "ubuntu-hpc", sku = "2204", version = "latest" }
}

variable "fault_domains" {
  description = "Over how many racks' power and switches Azure spreads the machines; what a region has, at most 3."
  type        = number
  default     = 2
}
