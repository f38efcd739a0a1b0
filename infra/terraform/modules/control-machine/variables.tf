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

variable "database_owner_url" {
  description = "PostgreSQL's address with the user and password of the schema's owner, who may create roles and need not be a superuser."
  type        = string
  sensitive   = true
  validation {
    condition     = can(regex("^postgresql://[!#-\\[\\]-~]+$", var.database_owner_url))
    error_message = "It is postgresql://…, without spaces, quotes or backslashes."
  }
}

variable "database_url" {
  description = "The same address with the user and password of API and worker. The first start makes that user, which owns nothing."
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

variable "ports" {
  description = "Ports: `api` for the load balancer, `coordinator` for servers, `coordinator_http` for APIs, `members` for other coordinators."
  type        = object({ api = number, coordinator = number, coordinator_http = number, members = number })
}

variable "addresses" {
  description = "Addresses of all machines of the control plane, in their order."
  type        = list(string)
  validation {
    condition     = contains([1, 3, 5], length(var.addresses)) && length(distinct(var.addresses)) == length(var.addresses)
    error_message = "There are one, three or five machines, each with its address: an even number survives no more losses than one less."
  }
  validation {
    condition     = alltrue([for address in var.addresses : can(regex("^[A-Za-z0-9.-]+$", address))])
    error_message = "An address is a name or an IPv4 address, without a port."
  }
}

variable "index" {
  description = "This machine's place among `addresses`."
  type        = number
}

variable "keys_seed" {
  description = "Seed of the keys that all machines have: the fleet's key, the keys of tokens, the API's secret. `openssl rand -hex 32` makes one."
  type        = string
  sensitive   = true
  validation {
    condition     = can(regex("^[0-9a-f]{64}$", var.keys_seed))
    error_message = "64 hexadecimal digits: `openssl rand -hex 32` makes them."
  }
}

variable "data_device" {
  description = "The block device for the coordinator's log and the keys, by a stable name. It is formatted if it is blank."
  type        = string
  validation {
    condition     = can(regex("^/dev/[A-Za-z0-9/_.-]+$", var.data_device))
    error_message = "A device is a path under /dev."
  }
}

variable "settings" {
  description = "Further settings of API and worker by their names, such as QUORATE_MAIL: docs/internals/processes.md. Those that the module makes itself are not among them."
  type        = map(string)
  default     = {}
  validation {
    condition     = alltrue([for name, value in var.settings : can(regex("^QUORATE_[A-Z0-9_]+$", name)) && can(regex("^[!#-\\[\\]-~ ]*$", value))])
    error_message = "A name is QUORATE_ and capitals; a value has no quotes, backslashes or line breaks, as systemd reads it."
  }
}

variable "secret_files" {
  description = "Files for settings that name one, by their names: each is /etc/quorate/files/NAME, for the API's account alone. Terraform's state holds them."
  type        = map(string)
  default     = {}
  sensitive   = true
  validation {
    condition     = alltrue([for name in nonsensitive(keys(var.secret_files)) : can(regex("^[a-z0-9][a-z0-9.-]*$", name))])
    error_message = "A name has small letters, digits, dots and dashes."
  }
}
