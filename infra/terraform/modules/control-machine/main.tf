# First start of a machine of coordinator, API, worker and collector, as cloud-init's user data. Several machines are given
# one seed, and derive the same keys from it.

module "collector" {
  source          = "../collector"
  release         = var.releases.collector
  traces_endpoint = var.traces_endpoint
}

locals {
  folder  = "/usr/local/lib/quorate"
  data    = "/var/lib/quorate"
  secrets = "${local.data}/secrets"
  scripts = "${path.module}/../machine/files"

  coordinators = [for address in var.addresses : "${address}:${var.ports.coordinator}"]
  own          = var.addresses[var.index]
  others       = [for address in var.addresses : "${address}:${var.ports.members}" if address != local.own]

  # The module's own settings win.
  environment = merge(var.settings, {
    DATABASE_URL                   = var.database_url
    REDIS_URL                      = var.redis_url
    QUORATE_LISTEN                 = "0.0.0.0:${var.ports.api}"
    QUORATE_PUBLIC_URL             = var.public_url
    QUORATE_COORDINATOR_URL        = join(",", [for address in var.addresses : "https://${address}:${var.ports.coordinator_http}"])
    QUORATE_COORDINATOR_CA_FILE    = "${local.data}/coordinator/ca.pem"
    QUORATE_COORDINATOR_TOKEN_FILE = "${local.secrets}/coordinator-admin-token"
    QUORATE_TOKEN_SIGNING_KEY_FILE = "${local.secrets}/token-signing-key.pem"
    QUORATE_SECRET_FILE            = "${local.secrets}/api-secret"
    QUORATE_OPERATOR_TOKEN_FILE    = "${local.secrets}/operator-token"
    QUORATE_MIGRATIONS_DIR         = "/opt/quorate/migrations"
    QUORATE_PORTAL_DIR             = "/opt/quorate/portal"
    QUORATE_WORKER_NAME            = "${var.name}-${var.index}"
    QUORATE_TRUSTED_PROXIES        = "1" # the load balancer, which alone reaches the API
    OTEL_EXPORTER_OTLP_ENDPOINT    = module.collector.otlp_endpoint
  })
  # The database's owner is for the schema alone.
  environments = {
    "control.env" = local.environment
    "owner.env"   = { QUORATE_OWNER_DATABASE_URL = var.database_owner_url }
  }

  python = "/opt/quorate/venv/bin/python -m quorate_api.main"
  services = {
    quorate-secrets = {
      about = "Quorate's keys, made once"
      type  = "oneshot"
      after = "quorate-disk.service"
      run   = "${local.folder}/make-secrets ${local.secrets}"
      # systemd reads it as root, and shows it to this service alone.
      credential = "keys-seed:/etc/quorate/keys.seed"
    }
    quorate-coordinator = {
      about = "Quorate's coordinator"
      type  = "exec"
      after = "quorate-secrets.service"
      run = join(" ", [
        "/usr/local/bin/quorate-coordinator",
        "--data-dir ${local.data}/coordinator",
        "--listen-control 0.0.0.0:${var.ports.coordinator}",
        "--advertise-control ${local.own}:${var.ports.coordinator}",
        "--listen-http 0.0.0.0:${var.ports.coordinator_http}",
        "--advertise-http ${local.own}:${var.ports.coordinator_http}",
        "--listen-members 0.0.0.0:${var.ports.members}",
        "--advertise-members ${local.own}:${var.ports.members}",
        # The first machine of a new fleet begins it, once the others are there.
        length(local.others) == 0 ? "" : "--join ${join(",", local.others)}${var.index == 0 ? " --begin" : ""}",
        "--fleet-key-file ${local.secrets}/fleet.key",
        "--token-public-keys ${local.secrets}/token-public-keys.json",
        "--admin-token-file ${local.secrets}/coordinator-admin-token",
        "--otlp-endpoint ${module.collector.otlp_endpoint}",
      ])
    }
    quorate-migrate = {
      about        = "Quorate's database schema and the login of its processes, brought up to date"
      type         = "oneshot"
      after        = "quorate-secrets.service"
      run          = "${local.python} migrate"
      environments = ["control.env", "owner.env"]
    }
    quorate-api = {
      about = "Quorate's API and portal"
      type  = "exec"
      after = "quorate-migrate.service"
      run   = "${local.python} api"

      environments = ["control.env"]
    }
    quorate-worker = {
      about = "Quorate's worker: usage, reports, invoices"
      type  = "exec"
      after = "quorate-migrate.service"
      run   = "${local.python} worker"

      environments = ["control.env"]
    }
  }

  files = concat(
    module.collector.files,
    [
      for name, release in { coordinator = var.releases.coordinator, api = var.releases.api } :
      { path = "/etc/quorate/${name}.release", permissions = "0600", content = "${release.url}\n${release.sha256}\n" }
    ],
    [
      { path = "/etc/quorate/keys.seed", permissions = "0600", content = "${var.keys_seed}\n" },
      {
        path        = "/etc/systemd/system/quorate-disk.service"
        permissions = "0644"
        content = templatefile("${local.scripts}/quorate-disk.service.tftpl", {
          folder = local.folder
          data   = local.data
          device = var.data_device
        })
      },
    ],
    [
      for name, environment in local.environments : {
        path        = "/etc/quorate/${name}"
        permissions = "0600"
        content     = join("", [for variable, value in environment : "${variable}=\"${value}\"\n"])
      }
    ],
    [
      # Once cloud-init has made the account.
      for name in nonsensitive(keys(var.secret_files)) :
      { path = "/etc/quorate/files/${name}", permissions = "0400", content = var.secret_files[name], owner = "quorate:quorate", defer = true }
    ],
    [
      for name in ["fetch-release", "install-release", "prepare-disk"] :
      { path = "${local.folder}/${name}", permissions = "0755", content = file("${local.scripts}/${name}.sh") }
    ],
    [
      for name in ["bootstrap", "install-api", "make-secrets"] :
      { path = "${local.folder}/${name}", permissions = "0755", content = file("${path.module}/files/${name}.sh") }
    ],
    [
      for name, service in local.services : {
        path        = "/etc/systemd/system/${name}.service"
        permissions = "0644"
        content = templatefile("${path.module}/files/service.tftpl", merge({ credential = "", environments = [] }, service, {
          least_privilege = replace(file("${local.scripts}/least-privilege.conf"), "MemoryDenyWriteExecute=yes\n", "")
        }))
      }
    ],
  )

  cloud_config = {
    users       = ["default", { name = "quorate", system = true, no_create_home = true, shell = "/usr/sbin/nologin" }]
    packages    = ["curl", "openssl", "python3.11-venv"]
    write_files = [for file in local.files : merge({ owner = "root:root" }, file)]
    runcmd      = [["${local.folder}/bootstrap"]]
  }
}
