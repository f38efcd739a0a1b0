mock_provider "quorate" {
  mock_resource "quorate_join_token" {
    defaults = { token = "qjt_one" }
  }
}
mock_provider "quorate-local" {}

variables {
  coordinator   = "127.0.0.1:7300"
  server_binary = "/usr/local/bin/quorate-replica"
  state_dir     = "/tmp/quorate"
}

run "four_servers" {
  assert {
    condition     = keys(output.quorate_fleet.servers) == ["s1", "s2", "s3", "s4"] && output.quorate_fleet.version == 1
    error_message = "servers are numbered"
  }
}

run "three_servers" {
  variables { server_count = 3 }
  assert {
    condition     = keys(output.quorate_fleet.servers) == ["s1", "s2", "s3"]
    error_message = "the last one is removed"
  }
}
