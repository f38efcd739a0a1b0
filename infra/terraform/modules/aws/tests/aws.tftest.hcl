mock_provider "aws" {
  mock_resource "aws_network_interface" {
    defaults = { private_ip = "10.4.0.4" }
  }
  mock_resource "aws_ebs_volume" {
    defaults = { id = "vol-0123456789abcdef0" }
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

  vpc_id            = "vpc-1"
  subnet_id         = "subnet-1"
  availability_zone = "eu-west-1a"
  image_id          = "ami-1"
}

run "a_fleet" {
  assert {
    condition     = toset(keys(output.instances)) == toset(["s1", "s2", "s3"])
    error_message = "every server has one machine"
  }
  assert {
    condition     = alltrue([for machine in aws_instance.servers : machine.root_block_device[0].encrypted]) && alltrue([for disk in aws_ebs_volume.data : disk.encrypted])
    error_message = "disks are encrypted"
  }
  assert {
    condition     = alltrue([for name, id in output.instances : id == aws_instance.servers[name].id])
    error_message = "instances are the machines' ids"
  }
  assert {
    condition     = aws_placement_group.fleet.strategy == "cluster" && alltrue([for template in aws_launch_template.servers : template.placement[0].group_name == aws_placement_group.fleet.name])
    error_message = "all machines are in one cluster placement group"
  }
  assert {
    condition     = alltrue([for nic in aws_network_interface.servers : nic.interface_type == "efa"])
    error_message = "each machine has an Elastic Fabric Adapter"
  }
  assert {
    condition     = alltrue([for name, template in aws_launch_template.servers : template.network_interfaces[0].network_interface_id == aws_network_interface.servers[name].id])
    error_message = "each machine has its own interface"
  }
  assert {
    condition     = alltrue([for rule in [aws_vpc_security_group_ingress_rule.peers, aws_vpc_security_group_egress_rule.peers] : rule.ip_protocol == "-1" && rule.referenced_security_group_id == aws_security_group.servers.id])
    error_message = "EFA needs all traffic between its machines, both ways"
  }
  assert {
    condition     = alltrue([for template in aws_launch_template.servers : template.metadata_options[0].http_tokens == "required" && template.metadata_options[0].http_put_response_hop_limit == 1])
    error_message = "user data holds a join token, so metadata requires a session of the machine's own"
  }
  assert {
    condition     = strcontains(base64decode(aws_launch_template.servers["s2"].user_data), "qjt_two") && !strcontains(base64decode(aws_launch_template.servers["s2"].user_data), "qjt_one")
    error_message = "each machine gets its own join token and no other's"
  }
  assert {
    condition     = alltrue([for template in aws_launch_template.servers : length(base64decode(template.user_data)) < 16384])
    error_message = "AWS takes 16 KiB of user data"
  }
  assert {
    condition     = strcontains(base64decode(aws_launch_template.servers["s1"].user_data), "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0123456789abcdef0")
    error_message = "the machine finds the disk by its volume"
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.clients == {} && aws_vpc_security_group_ingress_rule.admins == {}
    error_message = "only the named networks are admitted"
  }
  assert {
    condition     = output.rdma.kind == "efa" && !output.rdma.ordered
    error_message = "EFA's datagrams are not ordered"
  }
}

run "clients_and_admins" {
  variables {
    client_cidrs = ["10.9.0.0/16"]
    admin        = { ssh_public_key = "ssh-ed25519 AAAA operator", cidrs = ["192.0.2.0/24"] }

    prometheus_cidrs = ["10.8.0.0/24"]
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.clients["10.9.0.0/16"].from_port == 7400 && aws_vpc_security_group_ingress_rule.admins["192.0.2.0/24"].to_port == 22 && aws_vpc_security_group_ingress_rule.metrics["10.8.0.0/24"].to_port == 9464
    error_message = "clients reach the servers, admins SSH, Prometheus the collectors"
  }
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
