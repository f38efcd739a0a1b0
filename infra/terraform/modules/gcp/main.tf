# H4D machines. RDMA needs a network of its own, with the zone's Falcon profile, that takes RDMA interfaces only. Each
# machine therefore has two interfaces: gVNIC for IP, and IRDMA.

locals {
  machine_type = coalesce(var.machine_type, "h4d-highmem-192-lssd")
  location     = join("-", slice(split("-", var.zone), 0, 2)) # Google's region of the zone
  machines     = { for name in keys(var.servers) : name => "${var.name}-${name}" }
  tag          = "${var.name}-servers"
  disk         = "quorate-data"
}

resource "google_compute_resource_policy" "fleet" {
  project = var.project
  region  = local.location
  name    = var.name
  group_placement_policy {
    collocation = "COLLOCATED"
  }
}

resource "google_compute_network" "rdma" {
  project                 = var.project
  name                    = "${var.name}-rdma"
  auto_create_subnetworks = false
  network_profile         = "projects/${var.project}/global/networkProfiles/${var.zone}-vpc-falcon"
}

resource "google_compute_subnetwork" "rdma" {
  project       = var.project
  region        = local.location
  name          = "${var.name}-rdma"
  network       = google_compute_network.rdma.id
  ip_cidr_range = var.rdma_cidr
}

resource "google_compute_firewall" "peers" {
  project     = var.project
  name        = "${var.name}-peers"
  network     = var.network
  source_tags = [local.tag]
  target_tags = [local.tag]
  allow {
    protocol = "tcp"
    ports    = [tostring(var.port)]
  }
}

resource "google_compute_firewall" "inbound" {
  for_each = {
    for name, rule in {
      clients = { port = var.port, cidrs = var.client_cidrs }
      admins  = { port = 22, cidrs = var.admin.cidrs }
      metrics = { port = 9464, cidrs = var.prometheus_cidrs }
    } : name => rule if length(rule.cidrs) > 0
  }
  project       = var.project
  name          = "${var.name}-${each.key}"
  network       = var.network
  source_ranges = each.value.cidrs
  target_tags   = [local.tag]
  allow {
    protocol = "tcp"
    ports    = [tostring(each.value.port)]
  }
}

resource "google_compute_address" "servers" {
  for_each     = local.machines
  project      = var.project
  region       = local.location
  name         = each.value
  address_type = "INTERNAL"
  subnetwork   = var.subnetwork
}

resource "google_compute_disk" "data" {
  for_each               = local.machines
  project                = var.project
  zone                   = var.zone
  name                   = "${each.value}-data"
  type                   = "hyperdisk-balanced"
  size                   = var.data_disk_gb
  provisioned_iops       = var.data_disk_speed.iops
  provisioned_throughput = var.data_disk_speed.mb_per_s
}

module "machine" {
  source         = "../machine"
  for_each       = var.servers
  name           = each.key
  coordinator    = var.coordinator
  join_token     = var.join_tokens[each.key]
  release        = var.release
  listen         = "${google_compute_address.servers[each.key].address}:${var.port}"
  region         = var.region
  failure_domain = each.value.failure_domain
  capacity       = var.capacity
  redis_url      = var.redis_url
  otlp_endpoint  = var.otlp_endpoint
  collector      = var.collector
  data_device    = "/dev/disk/by-id/google-${local.disk}"
  ofi_provider   = "verbs"
  transport      = var.transport
}

resource "google_compute_instance" "servers" {
  for_each          = local.machines
  project           = var.project
  zone              = var.zone
  name              = each.value
  machine_type      = local.machine_type
  tags              = [local.tag]
  resource_policies = [google_compute_resource_policy.fleet.id]

  boot_disk {
    initialize_params {
      image = var.image
      type  = "hyperdisk-balanced"
    }
  }
  attached_disk {
    source      = google_compute_disk.data[each.key].id
    device_name = local.disk
  }
  network_interface {
    nic_type   = "GVNIC"
    subnetwork = var.subnetwork
    network_ip = google_compute_address.servers[each.key].address
  }
  network_interface {
    nic_type   = "IRDMA"
    subnetwork = google_compute_subnetwork.rdma.id
  }
  scheduling {
    on_host_maintenance = "TERMINATE" # running machines with RDMA cannot be moved
    automatic_restart   = true
  }
  metadata = {
    user-data              = module.machine[each.key].user_data
    ssh-keys               = "${var.admin.user}:${var.admin.ssh_public_key}"
    block-project-ssh-keys = "true"
  }
  # The firewall rules exist before the machine, and are deleted after it.
  depends_on = [google_compute_firewall.peers, google_compute_firewall.inbound]
  lifecycle {
    # Only the first start reads them. A new release or token must not change serving machines.
    ignore_changes = [metadata["user-data"], boot_disk[0].initialize_params[0].image]
  }
}
