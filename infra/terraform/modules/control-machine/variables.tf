variable "name" {
  description = "The machine's name."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,18}[a-z0-9]$", var.name))
    error_message = "A name has 2 to 20 small letters, digits and dashes, and begins with a letter."
  }
}

variable "releases" {
  description = "Releases to install, each by https address and SHA-256: the program quorate-coordinator, the archive quorate-api.tar.gz, and the archive otelcol-contrib_VERSION_linux_ARCHITECTURE.tar.gz of the collector's release 0.120 or newer."
  type = object({
    coordinator = object({ url = string, sha256 = string })
    api         = object({ url = string, sha256 = string })
    collector   = object({ url = string, sha256 = string })
  })
  validation {
    condition     = alltrue([for release in var.releases : can(regex("^https://[!#-\\[\\]-~]+$", release.url)) && can(regex("^[0-9a-f]{64}$", release.sha256))])
    error_message = "Each release is an https address without spaces, quotes and backslashes, and 64 hexadecimal digits."
  }
}

variable "public_url" {
  description = "The API's address, https://…. Its name must resolve to the load balancer."
  type        = string
  validation {
    condition     = can(regex("^https://[A-Za-z0-9.-]+$", var.public_url))
    error_message = "It is https:// and a name, without a path."
  }
}

variable "traces_endpoint" {
  description = "The trace store's OTLP address, https. Prometheus scrapes the metrics."
  type        = string
  validation {
    condition     = can(regex("^https://[A-Za-z0-9./:_-]+$", var.traces_endpoint))
    error_message = "It is https://…"
  }
}

variable "database_url" {
  description = "PostgreSQL's address, with the password of the schema's owner."
  type        = string
  sensitive   = true
  validation {
    condition     = can(regex("^postgresql://[!#-\\[\\]-~]+$", var.database_url)) # no quote: systemd reads it
    error_message = "It is postgresql://…, without spaces, quotes or backslashes."
  }
}

variable "redis_url" {
  description = "Redis's address."
  type        = string
  sensitive   = true
  validation {
    condition     = can(regex("^redis://[!#-\\[\\]-~]+$", var.redis_url))
    error_message = "It is redis://…, without spaces, quotes or backslashes."
  }
}

variable "api_port" {
  description = "Port of the API for the load balancer."
  type        = number
}

variable "coordinator_port" {
  description = "Port of the coordinator for servers."
  type        = number
}

variable "data_device" {
  description = "The block device for the coordinator's log and the keys, by a stable name. It is formatted if it is blank."
  type        = string
  validation {
    condition     = can(regex("^/dev/[A-Za-z0-9/_.-]+$", var.data_device))
    error_message = "A device is a path under /dev."
  }
}
