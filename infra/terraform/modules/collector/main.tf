# OpenTelemetry's collector on a machine: files for cloud-init, in addition to those of the modules machine and
# control-machine. It uses their fetch-release. files/collector.yaml is a copy of infra/observability's.

locals {
  config = file("${path.module}/files/collector.yaml")
  files = [
    { path = "/etc/quorate/collector.release", permissions = "0600", content = "${var.release.url}\n${var.release.sha256}\n" },
    { path = "/etc/quorate/collector.yaml", permissions = "0644", content = local.config },
    { path = "/etc/quorate/collector.env", permissions = "0600", content = "TRACES_ENDPOINT=\"${var.traces_endpoint}\"\n" },
    { path = "/usr/local/lib/quorate/install-collector", permissions = "0755", content = file("${path.module}/files/install-collector.sh") },
    {
      path        = "/etc/systemd/system/quorate-collector.service"
      permissions = "0644"
      content = templatefile("${path.module}/files/quorate-collector.service.tftpl", {
        least_privilege = file("${path.module}/../machine/files/least-privilege.conf")
      })
    },
  ]
}
