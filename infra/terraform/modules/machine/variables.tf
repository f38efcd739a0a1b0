variable "name" {
  description = "The server's name in the fleet, and the machine's."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,61}[a-z0-9]$", var.name))
    error_message = "A name has 2 to 63 small letters, digits and dashes, and begins with a letter."
  }
}

variable "coordinator" {
  description = "The coordinators' control listeners: host:port of each, with commas."
  type        = string
  validation {
    condition     = can(regex("^[A-Za-z0-9.-]+:[0-9]{1,5}(,[A-Za-z0-9.-]+:[0-9]{1,5})*$", var.coordinator))
    error_message = "Coordinators are host:port, with commas between several."
  }
}

variable "join_token" {
  description = "A token for one registration under this name. It is in a file that only root reads, and on no command line."
  type        = string
  sensitive   = true
  validation {
    condition     = can(regex("^[!-~]+$", var.join_token))
    error_message = "A join token is one word."
  }
}

variable "release" {
  description = "The program quorate-replica for this machine: its https address and SHA-256."
  type        = object({ url = string, sha256 = string })
  validation {
    condition     = can(regex("^https://[!#-\\[\\]-~]+$", var.release.url)) # no space, quote or backslash: curl's configuration has it
    error_message = "The release's address is https, without spaces, quotes and backslashes."
  }
  validation {
    condition     = can(regex("^[0-9a-f]{64}$", var.release.sha256))
    error_message = "A SHA-256 has 64 hexadecimal digits, small letters."
  }
}

variable "listen" {
  description = "The server's address for clients and peers: an IP address of the machine, and a port."
  type        = string
  validation {
    condition     = can(regex("^[0-9a-f.:\\[\\]]+:[0-9]{1,5}$", var.listen))
    error_message = "The address is IP:port."
  }
}

variable "region" {
  description = "The fleet's name of this machine's place."
  type        = string
  validation {
    condition     = can(regex("^[A-Za-z0-9_.-]{1,64}$", var.region))
    error_message = "A region has 1 to 64 letters, digits, dots, dashes and underscores."
  }
}

variable "failure_domain" {
  description = "The set of machines that fail together with this one; null: it fails alone."
  type        = string
  default     = null
  validation {
    condition     = var.failure_domain == null || can(regex("^[A-Za-z0-9_.-]{1,64}$", var.failure_domain))
    error_message = "A failure domain has 1 to 64 letters, digits, dots, dashes and underscores."
  }
}

variable "capacity" {
  description = "Capacity of the machine that admission may promise, and its threads; null: the server's default."
  type = object({
    shards              = optional(number)
    cpu                 = optional(number)
    network_bytes_per_s = optional(number)
    storage_io_per_s    = optional(number)
  })
  default = {}
}

variable "redis_url" {
  description = "Address of Redis, which takes usage and telemetry; null: none. It may hold a password."
  type        = string
  default     = null
  sensitive   = true
  validation {
    condition     = var.redis_url == null || can(regex("^redis://[!#-\\[\\]-~]+$", var.redis_url)) # no quote: systemd reads it
    error_message = "It is redis://…, because a server speaks no TLS to Redis, without spaces, quotes and backslashes."
  }
}

variable "otlp_endpoint" {
  description = "Address of a collector on the machine itself, http; null: no traces and metrics are exported."
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
  description = "OpenTelemetry's collector for this machine: its release (see the module collector), and the trace store's address. Null: none is installed."
  type        = object({ url = string, sha256 = string, traces_endpoint = string })
  default     = null
}

variable "data_device" {
  description = "The block device for the journal, by a stable name. It is formatted if it is blank. Null: the system's disk."
  type        = string
  default     = null
  validation {
    condition     = var.data_device == null || can(regex("^/dev/[A-Za-z0-9/_.-]+$", var.data_device))
    error_message = "A device is a path under /dev."
  }
}

variable "ofi_provider" {
  description = "libfabric's provider for the machine's RDMA device: efa or verbs. One-sided writes are tested at each start, and the coordinator is told of the result. Null: the machine has no such device."
  type        = string
  default     = null
  validation {
    condition     = contains(["efa", "verbs"], coalesce(var.ofi_provider, "efa"))
    error_message = "A provider is efa or verbs."
  }
}

variable "transport" {
  description = "How frames travel between servers: tcp, with TLS; or ofi, by one-sided writes, which are not encrypted: only on a network that no stranger reaches. Where the test of one-sided writes fails, a server uses tcp."
  type        = string
  default     = "tcp"
  validation {
    condition     = contains(["tcp", "ofi"], var.transport)
    error_message = "A transport is tcp or ofi."
  }
  validation {
    condition     = var.transport == "tcp" || var.ofi_provider != null
    error_message = "One-sided writes need a machine with an RDMA device."
  }
}
