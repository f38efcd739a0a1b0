variable "vpc_id" {
  description = "The network of the subnet."
  type        = string
}

variable "subnet_id" {
  description = "The machines' subnet, in one zone. It must reach the coordinator, Redis and the release."
  type        = string
}

variable "availability_zone" {
  description = "The zone of the subnet and of the disks."
  type        = string
}

variable "image_id" {
  description = "An image with systemd 247 or newer, cloud-init and EFA's driver, such as Ubuntu 24.04's for this region."
  type        = string
}

variable "data_disk_speed" {
  description = "Operations and MB each data disk does a second. gp3 allows up to 16000 operations and 1000 MB."
  type        = object({ iops = number, mb_per_s = number })
  default     = { iops = 16000, mb_per_s = 1000 }
}
