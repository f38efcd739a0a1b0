mock_provider "quorate-local" {}

variables {
  name          = "trial"
  servers       = { s1 = {}, s2 = { failure_domain = "rack-7" } }
  join_tokens   = { s1 = "qjt_one", s2 = "qjt_two" }
  coordinator   = "127.0.0.1:7300"
  region        = "local"
  server_binary = "/usr/local/bin/quorate-replica"
  state_dir     = "/tmp/quorate"
}

run "a_fleet" {
  assert {
    condition     = alltrue([for name, id in output.instances : id == quorate_local_server.servers[name].id]) && keys(output.instances) == ["s1", "s2"]
    error_message = "every server has one process"
  }
  assert {
    condition     = quorate_local_server.servers["s2"].failure_domain == "rack-7" && quorate_local_server.servers["s1"].state_dir == "/tmp/quorate/trial"
    error_message = "servers have the requested settings"
  }
  assert {
    condition     = output.rdma.kind == "none"
    error_message = "loopback has no RDMA"
  }
}

run "one_token_for_each_server" {
  command = plan
  variables { join_tokens = { s1 = "qjt_one" } }
  expect_failures = [var.join_tokens]
}

run "what_it_cannot_do_it_refuses" {
  command = plan
  variables { otlp_endpoint = "http://127.0.0.1:4318" }
  expect_failures = [quorate_local_server.servers]
}
