variable "name" {
  description = "The server's name in the fleet, and the machine's."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,61}[a-z0-9]$", var.name))
    error_message = "A name has 2 to 63 small letters, digits and dashes, and begins with a letter."
  }
}

variable "coordinator" {
  description = "The coordinator's control listener, host:port."
  type        = string
  validation {
    condition     = can(regex("^[A-Za-z0-9.-]+:[0-9]{1,5}$", var.coordinator))
    error_message = "The coordinator is host:port."
  }
}

variable "join_token" {
  description = "For one registration under this name. It stands in a file that only root reads, and on no command line."
  type        = string
  sensitive   = true
  validation {
    condition     = can(regex("^[!-~]+$", var.join_token))
    error_message = "A join token is one word."
  }
}

variable "release" {
  description = "The program quorate-replica for this machine: where it is, and its SHA-256."
  type        = object({ url = string, sha256 = string })
  validation {
    condition     = can(regex("^https://[!#-\\[\\]-~]+$", var.release.url)) # no space, quote or backslash: curl's configuration has it
    error_message = "The release comes by https, and its address has neither spaces, quotes nor backslashes."
  }
  validation {
    condition     = can(regex("^[0-9a-f]{64}$", var.release.sha256))
    error_message = "A SHA-256 has 64 hexadecimal digits, small letters."
  }
}

variable "listen" {
  description = "Where clients and peers reach the server: an address of the machine's own, and a port."
  type        = string
  validation {
    condition     = can(regex("^[0-9a-f.:\\[\\]]+:[0-9]{1,5}$", var.listen))
    error_message = "The address is IP:port."
  }
}

variable "region" {
  description = "The fleet's word for where this machine is."
  type        = string
  validation {
    condition     = can(regex("^[A-Za-z0-9_.-]{1,64}$", var.region))
    error_message = "A region has 1 to 64 letters, digits, dots, dashes and underscores."
  }
}

variable "failure_domain" {
  description = "What fails together with this machine; null: it fails alone."
  type        = string
  default     = null
  validation {
    condition     = var.failure_domain == null || can(regex("^[A-Za-z0-9_.-]{1,64}$", var.failure_domain))
    error_message = "A failure domain has 1 to 64 letters, digits, dots, dashes and underscores."
  }
}

variable "capacity" {
  description = "What admission may promise of the machine, and its threads; null leaves the server's default."
  type = object({
    shards              = optional(number)
    cpu                 = optional(number)
    network_bytes_per_s = optional(number)
    storage_io_per_s    = optional(number)
  })
  default = {}
}

variable "redis_url" {
  description = "Where usage and telemetry go; null: nowhere. It may hold a password."
  type        = string
  default     = null
  sensitive   = true
  validation {
    condition     = var.redis_url == null || can(regex("^redis://[!#-\\[\\]-~]+$", var.redis_url)) # no quote: systemd reads it
    error_message = "It is redis://…, for a server speaks no TLS to Redis, and has neither spaces, quotes nor backslashes."
  }
}

variable "otlp_endpoint" {
  description = "A collector on the machine itself, http; null: no traces and metrics are exported."
  type        = string
  default     = null
  validation {
    condition     = var.collector == null || var.otlp_endpoint != null
    error_message = "Nothing would be sent to the collector that is installed: otlp_endpoint is http://127.0.0.1:4318."
  }
  validation {
    condition     = var.otlp_endpoint == null || can(regex("^http://[A-Za-z0-9.-]+(:[0-9]{1,5})?$", var.otlp_endpoint))
    error_message = "It is http://host:port."
  }
}

variable "collector" {
  description = "OpenTelemetry's collector for this machine: its release (see the module collector), and where traces go. Null: none is installed."
  type        = object({ url = string, sha256 = string, traces_endpoint = string })
  default     = null
}

variable "data_device" {
  description = "The block device for the journal, by a name that does not change. It is formatted if it is blank. Null: the system's disk."
  type        = string
  default     = null
  validation {
    condition     = var.data_device == null || can(regex("^/dev/[A-Za-z0-9/_.-]+$", var.data_device))
    error_message = "A device is a path under /dev."
  }
}

variable "rdma_expected" {
  description = "Whether the machine should have an RDMA device: its log says so if it has none."
  type        = bool
  default     = false
}
