mock_provider "aws" {
  mock_resource "aws_ebs_volume" {
    defaults = { id = "vol-0123456789abcdef0" }
  }
  mock_resource "aws_db_instance" {
    defaults = { endpoint = "quorate.example.eu-north-1.rds.amazonaws.com:5432" }
  }
  mock_resource "aws_elasticache_replication_group" {
    defaults = { primary_endpoint_address = "quorate.example.cache.amazonaws.com" }
  }
}

override_resource {
  target = aws_network_interface.control["0"]
  values = { private_ip = "10.65.1.4" }
}

override_resource {
  target = aws_network_interface.control["1"]
  values = { private_ip = "10.65.2.4" }
}

override_resource {
  target = aws_network_interface.control["2"]
  values = { private_ip = "10.65.3.4" }
}

variables {
  name               = "quorate"
  vpc_id             = "vpc-1"
  private_subnet_ids = ["subnet-1", "subnet-2", "subnet-5"]
  public_subnet_ids  = ["subnet-3", "subnet-4"]
  availability_zones = ["eu-north-1b", "eu-north-1a", "eu-north-1c"]
  keys_seed          = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
  server_cidrs       = ["10.65.0.0/24"]
  public_url         = "https://quorate.example.com"
  certificate_arn    = "arn:aws:acm:eu-north-1:000000000000:certificate/1"
  image_id           = "ami-1"
  traces_endpoint    = "https://traces.example.com"
  database_password  = "not-a-password-of-anything"
  releases = {
    coordinator = { url = "https://releases.example.com/c", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
    api         = { url = "https://releases.example.com/a", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
    collector   = { url = "https://releases.example.com/o", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
  }
}

run "data" {
  assert {
    condition     = aws_db_instance.control.multi_az && aws_db_instance.control.storage_encrypted && aws_db_instance.control.deletion_protection && aws_db_instance.control.backup_retention_period >= 7
    error_message = "PostgreSQL is in two zones, encrypted, backed up, and protected from deletion"
  }
  assert {
    condition     = aws_elasticache_replication_group.control.automatic_failover_enabled && one([for p in aws_elasticache_parameter_group.control.parameter : p.value]) == "noeviction"
    error_message = "Redis fails over, and loses no usage"
  }
  assert {
    condition     = output.coordinator == "10.65.1.4:7300,10.65.2.4:7300,10.65.3.4:7300" && output.redis_url == "redis://quorate.example.cache.amazonaws.com:6379/0"
    error_message = "servers get the addresses of all coordinators and of Redis"
  }
}

run "who_reaches_what" {
  assert {
    condition     = alltrue([for rule in aws_vpc_security_group_ingress_rule.networks : rule.cidr_ipv4 == "10.65.0.0/24" || contains([80, 443], rule.from_port)])
    error_message = "only the load balancer is reachable from the world"
  }
  assert {
    condition     = alltrue([for key, rule in aws_vpc_security_group_ingress_rule.networks : rule.from_port != 22])
    error_message = "nobody logs in without a named key"
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.groups["database"].referenced_security_group_id == aws_security_group.roles["machine"].id && !contains([for rule in aws_vpc_security_group_ingress_rule.networks : rule.from_port], 5432)
    error_message = "only the machine reaches PostgreSQL"
  }
  assert {
    condition     = aws_lb_listener.https.protocol == "HTTPS" && aws_lb_listener.http.default_action[0].redirect[0].status_code == "HTTP_301"
    error_message = "the API is reachable by https only"
  }
  assert {
    condition     = aws_lb_target_group.api.health_check[0].path == "/v1/ready"
    error_message = "an API that is not ready gets no requests"
  }
}

run "the_machines" {
  assert {
    condition     = alltrue([for machine in aws_instance.control : machine.metadata_options[0].http_tokens == "required"])
    error_message = "user data holds a password, so metadata requires a session of the machine's own"
  }
  assert {
    condition     = alltrue([for machine in aws_instance.control : length(machine.user_data_base64) * 3 / 4 < 16384])
    error_message = "AWS takes 16 KiB of user data"
  }
  assert {
    condition     = length(distinct([for volume in aws_ebs_volume.control : volume.availability_zone])) == 3 && length(aws_lb_target_group_attachment.api) == 3
    error_message = "each zone has a machine with its disk, and the load balancer reaches all"
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.groups["members"].referenced_security_group_id == aws_security_group.roles["machine"].id
    error_message = "coordinators reach one another, and nobody else reaches them there"
  }
}

run "no_two_coordinators" {
  command = plan
  variables { availability_zones = ["eu-north-1b", "eu-north-1a"] }
  expect_failures = [var.availability_zones]
}

run "no_zone_without_a_subnet" {
  command = plan
  variables { private_subnet_ids = ["subnet-1", "subnet-2"] }
  expect_failures = [var.availability_zones]
}

run "no_weak_password" {
  command = plan
  variables { database_password = "quorate" }
  expect_failures = [var.database_password]
}

run "no_api_without_encryption" {
  command = plan
  variables { public_url = "http://quorate.example.com" }
  expect_failures = [var.public_url]
}
