variable "release" {
  description = "The archive otelcol-contrib_VERSION_linux_ARCHITECTURE.tar.gz of the collector's release 0.120 or newer: its https address and SHA-256."
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

variable "traces_endpoint" {
  description = "The trace store's OTLP address, https."
  type        = string
  validation {
    condition     = can(regex("^https://[A-Za-z0-9./:_-]+$", var.traces_endpoint))
    error_message = "It is https://…"
  }
}
