mock_provider "google" {
  mock_resource "google_compute_address" {
    defaults = { address = "10.4.0.4" }
  }
}

variables {
  name        = "prod"
  servers     = { s1 = {}, s2 = {}, s3 = { failure_domain = "rack-7" } }
  join_tokens = { s1 = "qjt_one", s2 = "qjt_two", s3 = "qjt_three" }
  coordinator = "coordinator.internal:7300"
  region      = "eu"
  release = {
    url    = "https://releases.example.com/quorate-replica"
    sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  }
  admin = { ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1dCBub3QgYSByZWFsIGtleSBhdCBhbGwhISE operator" }

  project    = "quorate-prod"
  zone       = "europe-west4-b"
  network    = "projects/quorate-prod/global/networks/main"
  subnetwork = "projects/quorate-prod/regions/europe-west4/subnetworks/servers"
  image      = "projects/quorate-prod/global/images/h4d-1"
}

run "a_fleet" {
  assert {
    condition     = toset(keys(output.instances)) == toset(["s1", "s2", "s3"])
    error_message = "every server has one machine"
  }
  assert {
    condition     = alltrue([for name, id in output.instances : id == google_compute_instance.servers[name].id])
    error_message = "instances are the machines' ids"
  }
  assert {
    condition     = google_compute_resource_policy.fleet.group_placement_policy[0].collocation == "COLLOCATED" && alltrue([for machine in google_compute_instance.servers : machine.resource_policies == tolist([google_compute_resource_policy.fleet.id])])
    error_message = "all machines are in one placement"
  }
  assert {
    condition     = endswith(google_compute_network.rdma.network_profile, "/global/networkProfiles/europe-west4-b-vpc-falcon")
    error_message = "the RDMA network has the profile of its zone"
  }
  assert {
    condition     = alltrue([for machine in google_compute_instance.servers : [for nic in machine.network_interface : nic.nic_type] == ["GVNIC", "IRDMA"]])
    error_message = "each machine has an ordinary interface first, and one for RDMA"
  }
  assert {
    condition     = alltrue([for machine in google_compute_instance.servers : startswith(machine.machine_type, "h4d-") && machine.scheduling[0].on_host_maintenance == "TERMINATE"])
    error_message = "H4D machines cannot be moved while they run"
  }
  assert {
    condition     = google_compute_subnetwork.rdma.region == "europe-west4"
    error_message = "the RDMA subnetwork is in the zone's region"
  }
  assert {
    condition     = strcontains(google_compute_instance.servers["s2"].metadata["user-data"], "qjt_two") && !strcontains(google_compute_instance.servers["s2"].metadata["user-data"], "qjt_one")
    error_message = "each machine gets its own join token and no other's"
  }
  assert {
    condition     = google_compute_firewall.inbound == {}
    error_message = "only the named networks are admitted"
  }
  assert {
    condition     = output.rdma.kind == "falcon" && output.rdma.ordered
    error_message = "reliable connections over Falcon keep the order"
  }
}

run "clients_and_admins" {
  variables {
    client_cidrs = ["10.9.0.0/16"]
    admin        = { ssh_public_key = "ssh-ed25519 AAAA operator", cidrs = ["192.0.2.0/24"] }

    prometheus_cidrs = ["10.8.0.0/24"]
  }
  assert {
    condition     = { for name, rule in google_compute_firewall.inbound : name => one(rule.source_ranges) } == { clients = "10.9.0.0/16", admins = "192.0.2.0/24", metrics = "10.8.0.0/24" }
    error_message = "clients, admins and Prometheus connect from the named networks"
  }
}

run "a_zone_and_not_a_region" {
  command = plan
  variables { zone = "europe-west4" }
  expect_failures = [var.zone]
}

run "one_token_for_each_server" {
  command = plan
  variables { join_tokens = { s1 = "qjt_one" } }
  expect_failures = [var.join_tokens]
}

run "names_fit_into_machines_names" {
  command = plan
  variables {
    servers     = { "S 1" = {} }
    join_tokens = { "S 1" = "qjt_one" }
  }
  expect_failures = [var.servers]
}

run "no_admins_from_everywhere" {
  command = plan
  variables {
    admin = {
      ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ1dCBub3QgYSByZWFsIGtleSBhdCBhbGwhISE operator"
      cidrs          = ["10.0.0.0/8", "0.0.0.0/0"]
    }
  }
  expect_failures = [var.admin]
}
