variable "server_binary" {
  description = "Absolute path of quorate-replica."
  type        = string
}

variable "state_dir" {
  description = "Absolute path of the folder for the servers' own folders."
  type        = string
}
