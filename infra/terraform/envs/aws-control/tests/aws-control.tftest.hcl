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
  target = module.control_plane.aws_network_interface.control["0"]
  values = { private_ip = "10.65.1.4" }
}

override_resource {
  target = module.control_plane.aws_network_interface.control["1"]
  values = { private_ip = "10.65.2.4" }
}

override_resource {
  target = module.control_plane.aws_network_interface.control["2"]
  values = { private_ip = "10.65.5.4" }
}

variables {
  public_url        = "https://quorate.example.com"
  certificate_arn   = "arn:aws:acm:eu-north-1:000000000000:certificate/1"
  image_id          = "ami-1"
  traces_endpoint   = "https://traces.example.com"
  database_password = "not-a-password-of-anything"
  keys_seed         = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
  releases = {
    coordinator = { url = "https://releases.example.com/c", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
    api         = { url = "https://releases.example.com/a", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
    collector   = { url = "https://releases.example.com/o", sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" }
  }
}

run "what_a_fleet_takes" {
  assert {
    condition     = output.for_the_fleet.coordinator == "10.65.1.4:7300,10.65.2.4:7300,10.65.5.4:7300" && output.for_the_fleet.subnet_id == aws_subnet.quorate["servers"].id
    error_message = "a fleet gets its network and the coordinators' addresses"
  }
  assert {
    condition     = alltrue([for key, association in aws_route_table_association.quorate : association.route_table_id == aws_route_table.quorate[startswith(key, "public") ? "public" : "private"].id])
    error_message = "only the load balancer's subnets are reachable from outside"
  }
}
