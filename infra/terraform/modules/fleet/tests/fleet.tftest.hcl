mock_provider "quorate" {
  mock_resource "quorate_server" {
    defaults = { server_id = 7, address = "10.4.0.4:7400" }
  }
}

variables {
  instances = { s1 = "machine-1", s2 = "machine-2" }
  rdma      = { kind = "efa", ordered = false }
  region    = "eu"
}

run "a_server_for_each_machine" {
  assert {
    condition     = quorate_server.fleet["s1"].instance_id == "machine-1" && quorate_server.fleet["s2"].instance_id == "machine-2"
    error_message = "each server depends on its machine"
  }
  assert {
    condition = jsonencode(output.quorate_fleet) == jsonencode({
      version = 1
      region  = "eu"
      rdma    = { kind = "efa", device = null, ordered = false }
      servers = { for name in ["s1", "s2"] : name => { id = 7, address = "10.4.0.4:7400" } }
    })
    error_message = "programs read the first version of the contract"
  }
}

run "one_fewer" {
  variables { instances = { s1 = "machine-1" } }
  assert {
    condition     = keys(quorate_server.fleet) == ["s1"]
    error_message = "deleting a machine deletes its server"
  }
}
