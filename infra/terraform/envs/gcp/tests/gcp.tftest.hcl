mock_provider "google" {
  mock_resource "google_compute_address" {
    defaults = { address = "10.66.0.4" }
  }
}
mock_provider "quorate" {
  mock_resource "quorate_join_token" {
    defaults = { token = "qjt_one" }
  }
}

variables {
  coordinator = "coordinator.example.com:7300"
  redis_url   = "redis://u:p@redis.example.com:6379/0"
  release = {
    url    = "https://releases.example.com/quorate-replica"
    sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  }
  admin            = { ssh_public_key = "ssh-ed25519 AAAA operator", cidrs = ["192.0.2.0/24"] }
  client_cidrs     = ["10.0.0.0/8"]
  prometheus_cidrs = ["10.8.0.0/24"]
  collector = {
    url             = "https://releases.example.com/otelcol-contrib_0.120.0_linux_amd64.tar.gz"
    sha256          = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    traces_endpoint = "https://traces.example.com"
  }
  project = "quorate-prod"
  image   = "projects/quorate-prod/global/images/h4d-1"
}

run "five_servers" {
  assert {
    condition     = length(output.quorate_fleet.servers) == 5 && contains(keys(output.quorate_fleet.servers), "gcp1")
    error_message = "five servers, so that a group of three survives a drain and a failure"
  }
  assert {
    condition     = output.quorate_fleet.region == "gcp-europe-west4"
    error_message = "customers name the region by cloud and place"
  }
}
