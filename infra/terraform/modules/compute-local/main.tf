# A fleet of processes on this machine's loopback, with the interface of a fleet of machines. It is for trying
# configurations, not for keeping data: all servers fail together.

resource "quorate_local_server" "servers" {
  provider            = quorate-local # without it Terraform looks for the resource in the provider quorate
  for_each            = var.servers
  name                = each.key
  state_dir           = "${var.state_dir}/${var.name}"
  server_binary       = var.server_binary
  coordinator         = var.coordinator
  join_token          = var.join_tokens[each.key]
  region              = var.region
  failure_domain      = each.value.failure_domain
  shards              = coalesce(var.capacity.shards, 1)
  cpu                 = var.capacity.cpu
  network_bytes_per_s = var.capacity.network_bytes_per_s
  storage_io_per_s    = var.capacity.storage_io_per_s
  redis_url           = var.redis_url

  lifecycle {
    precondition {
      condition     = var.transport == "tcp"
      error_message = "Servers on loopback have no RDMA: leave transport out."
    }
    precondition {
      condition     = var.otlp_endpoint == null
      error_message = "Servers on loopback export no traces and metrics: leave otlp_endpoint out."
    }
  }
}
