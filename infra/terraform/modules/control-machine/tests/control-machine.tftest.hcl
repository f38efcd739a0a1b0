variables {
  name               = "quorate"
  database_url       = "postgresql://quorate_login:secret@db.example.com:5432/quorate?sslmode=require"
  database_owner_url = "postgresql://quorate:owners@db.example.com:5432/quorate?sslmode=require"
  redis_url          = "redis://redis.example.com:6379/0"
  public_url         = "https://quorate.example.com"
  ports              = { api = 8080, coordinator = 7300, coordinator_http = 7301, members = 7302 }
  addresses          = ["10.65.1.4", "10.65.2.4", "10.65.3.4"]
  index              = 0
  keys_seed          = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
  traces_endpoint    = "https://traces.example.com"
  data_device        = "/dev/disk/by-id/control"
  releases = {
    coordinator = { url = "https://releases.example.com/x", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
    api         = { url = "https://releases.example.com/x", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
    collector   = { url = "https://releases.example.com/x", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
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
    releases = {
      coordinator = { url = "http://releases.example.com/x", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
      api         = { url = "https://releases.example.com/x", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
      collector   = { url = "https://releases.example.com/x", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
    }
  }
  expect_failures = [var.releases]
}

run "no_two_coordinators" {
  command = plan
  variables { addresses = ["10.65.1.4", "10.65.2.4"] }
  expect_failures = [var.addresses]
}

run "no_weak_seed" {
  command = plan
  variables { keys_seed = "secret" }
  expect_failures = [var.keys_seed]
}

run "no_second_setting_in_a_value" {
  command = plan
  variables { settings = { QUORATE_MAIL = "smtp\"\nLD_PRELOAD=\"/tmp/x" } }
  expect_failures = [var.settings]
}

run "no_path_in_a_file_name" {
  command = plan
  variables { secret_files = { "../x" = "secret" } }
  expect_failures = [var.secret_files]
}

run "no_second_variable_in_the_owners_address" {
  command = plan
  variables { database_owner_url = "postgresql://h/q\"\nLD_PRELOAD=\"/tmp/x" }
  expect_failures = [var.database_owner_url]
}

run "no_second_variable_in_an_address" {
  command = plan
  variables { database_url = "postgresql://h/q\"\nLD_PRELOAD=\"/tmp/x" }
  expect_failures = [var.database_url]
}
