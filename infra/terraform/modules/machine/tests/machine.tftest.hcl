variables {
  name        = "s1"
  coordinator = "coordinator.internal:7300"
  join_token  = "qjt_one"
  listen      = "10.4.0.4:7400"
  region      = "eu"
  release = {
    url    = "https://releases.example.com/quorate-replica"
    sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  }
}

run "cloud_config" {
  assert {
    condition     = startswith(output.user_data, "#cloud-config\n") && can(yamldecode(output.user_data))
    error_message = "cloud-init recognises its configuration by the first line"
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

run "no_quotes_in_addresses" {
  command = plan
  variables {
    release = { url = "https://releases.example.com/x\"\noutput = \"/etc/passwd", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
  }
  expect_failures = [var.release]
}

run "no_second_variable_in_redis_url" {
  command = plan
  variables { redis_url = "redis://h:6379\"\nLD_PRELOAD=\"/tmp/x" }
  expect_failures = [var.redis_url]
}

run "no_flags_in_names" {
  command = plan
  variables { name = "s1 --allow-plaintext" }
  expect_failures = [var.name]
}

run "no_flags_in_the_coordinator" {
  command = plan
  variables { coordinator = "c:1 --allow-plaintext" }
  expect_failures = [var.coordinator]
}

run "a_token_is_one_word" {
  command = plan
  variables { join_token = "qjt_one\nqjt_two" }
  expect_failures = [var.join_token]
}
