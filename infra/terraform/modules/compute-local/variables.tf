variable "server_binary" {
  description = "Absolute path of quorate-replica."
  type        = string
}

variable "state_dir" {
  description = "Absolute path of the folder in which each server has its own."
  type        = string
}
