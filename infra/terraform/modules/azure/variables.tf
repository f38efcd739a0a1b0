variable "resource_group_name" {
  description = "The resource group of all resources."
  type        = string
}

variable "location" {
  description = "Azure's name of the region."
  type        = string
}

variable "subnet_id" {
  description = "The machines' subnet. It must reach the coordinator, Redis and the release."
  type        = string
}

variable "image" {
  description = "An image with systemd 247 or newer, cloud-init and the drivers of InfiniBand. Name a version, so that machines are alike."
  type        = object({ publisher = string, offer = string, sku = string, version = string })
  default     = { publisher = "microsoft-dsvm", offer = "ubuntu-hpc", sku = "2204", version = "latest" }
}

variable "fault_domains" {
  description = "Number of fault domains (racks with their own power and switch) over which Azure spreads the machines; at most 3, depending on the region."
  type        = number
  default     = 2
}
