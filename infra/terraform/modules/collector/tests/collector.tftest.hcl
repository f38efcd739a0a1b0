variables {
  release = {
    url    = "https://releases.example.com/otelcol-contrib_0.120.0_linux_amd64.tar.gz"
    sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  }
  traces_endpoint = "https://traces.example.com"
}

run "files" {
  assert {
    condition     = output.otlp_endpoint == "http://127.0.0.1:4318"
    error_message = "only servers on the machine reach it"
  }
  assert {
    condition     = length(distinct([for file in output.files : file.path])) == 5
    error_message = "each file is written once"
  }
}

run "no_release_without_encryption" {
  command = plan
  variables {
    release = { url = "http://releases.example.com/x", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
  }
  expect_failures = [var.release]
}

run "no_release_without_a_checksum" {
  command = plan
  variables {
    release = { url = "https://releases.example.com/x", sha256 = "" }
  }
  expect_failures = [var.release]
}

run "no_traces_without_encryption" {
  command = plan
  variables { traces_endpoint = "http://traces.example.com" }
  expect_failures = [var.traces_endpoint]
}

run "no_second_variable_in_an_address" {
  command = plan
  variables { traces_endpoint = "https://h\"\nLD_PRELOAD=\"/tmp/x" }
  expect_failures = [var.traces_endpoint]
}
