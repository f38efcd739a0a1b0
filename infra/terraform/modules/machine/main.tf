# A machine's first start, as cloud-init's user data: install the named release, prepare the disk, register. No secret is
# in a command or in cloud-init's log.

module "collector" {
  source          = "../collector"
  count           = var.collector == null ? 0 : 1
  release         = { url = var.collector.url, sha256 = var.collector.sha256 }
  traces_endpoint = var.collector.traces_endpoint
}

locals {
  folder = "/usr/local/lib/quorate"
  data   = "/var/lib/quorate"

  options = {
    "data-dir"    = local.data
    "coordinator" = var.coordinator
    # systemd's copy for this unit, in memory. "%d" would need systemd 251.
    "join-token-file"     = "$${CREDENTIALS_DIRECTORY}/join-token"
    "listen"              = var.listen
    "name"                = var.name
    "region"              = var.region
    "failure-domain"      = var.failure_domain
    "shards"              = var.capacity.shards
    "cpu"                 = var.capacity.cpu
    "network-bytes-per-s" = var.capacity.network_bytes_per_s
    "storage-io-per-s"    = var.capacity.storage_io_per_s
    "otlp-endpoint"       = var.otlp_endpoint
    "ofi-provider"        = var.ofi_provider
    "ofi-selftest"        = var.ofi_provider == null ? null : "${local.data}/ofi-selftest.json"
    "transport"           = var.transport
  }
  arguments = join(" ", [for flag, value in local.options : "--${flag} ${value}" if value != null])

  unit = templatefile("${path.module}/files/quorate-replica.service.tftpl", {
    arguments = local.arguments
    folder    = local.folder
    data      = local.data
    provider  = var.ofi_provider
    host      = join(":", slice(split(":", var.listen), 0, length(split(":", var.listen)) - 1))
    disk      = var.data_device != null

    least_privilege = file("${path.module}/files/least-privilege.conf")
  })

  files = concat(
    [
      { path = "/etc/quorate/join-token", permissions = "0600", content = "${var.join_token}\n" },
      { path = "/etc/quorate/release", permissions = "0600", content = "${var.release.url}\n${var.release.sha256}\n" },
      {
        path        = "/etc/quorate/replica.env"
        permissions = "0600"
        content     = var.redis_url == null ? "" : "QUORATE_REDIS_URL=\"${var.redis_url}\"\n"
      },
      { path = "/etc/systemd/system/quorate-replica.service", permissions = "0644", content = local.unit },
    ],
    [
      for name in ["bootstrap", "fetch-release", "install-release", "preflight", "prepare-disk"] :
      { path = "${local.folder}/${name}", permissions = "0755", content = file("${path.module}/files/${name}.sh") }
    ],
    var.data_device == null ? [] : [{
      path        = "/etc/systemd/system/quorate-disk.service"
      permissions = "0644"
      content = templatefile("${path.module}/files/quorate-disk.service.tftpl", {
        folder = local.folder, data = local.data, device = var.data_device
      })
    }],
    var.ofi_provider == null ? [] : [{
      path        = "/etc/systemd/system/quorate-replica.service.d/rdma.conf"
      permissions = "0644"
      content     = file("${path.module}/files/rdma.conf")
    }],
    flatten(module.collector[*].files),
  )

  cloud_config = {
    users = ["default", { name = "quorate", system = true, no_create_home = true, shell = "/usr/sbin/nologin" }]
    # "root:root" is cloud-init's default, stated because 0600 has no meaning without an owner.
    write_files = [for file in local.files : merge(file, { owner = "root:root" })]
    runcmd      = [["${local.folder}/bootstrap"]]
    # The server loads it at run time.
    package_update = var.ofi_provider != null
    packages       = var.ofi_provider == null ? [] : ["libfabric1"]
  }
}
