# Machines with an Elastic Fabric Adapter in a cluster placement group: one zone, as close as AWS places them.

locals {
  machine_type = coalesce(var.machine_type, "hpc7a.12xlarge")
  machines     = { for name in keys(var.servers) : name => "${var.name}-${name}" }
  volumes      = { for name in keys(var.servers) : name => replace(aws_ebs_volume.data[name].id, "-", "") }
}

resource "aws_placement_group" "fleet" {
  name     = var.name
  strategy = "cluster"
}

resource "aws_security_group" "servers" {
  name        = "${var.name}-servers"
  description = "Quorate's servers"
  vpc_id      = var.vpc_id
}

# EFA needs all traffic between its machines allowed, both ways. It is not IP, so it has no ports.
resource "aws_vpc_security_group_ingress_rule" "peers" {
  security_group_id            = aws_security_group.servers.id
  referenced_security_group_id = aws_security_group.servers.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "peers" {
  security_group_id            = aws_security_group.servers.id
  referenced_security_group_id = aws_security_group.servers.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "anywhere" {
  security_group_id = aws_security_group.servers.id
  cidr_ipv4         = "0.0.0.0/0" # to the coordinator, Redis and the release
  ip_protocol       = "-1"
}

resource "aws_vpc_security_group_ingress_rule" "clients" {
  for_each          = toset(var.client_cidrs)
  security_group_id = aws_security_group.servers.id
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = var.port
  to_port           = var.port
}

resource "aws_vpc_security_group_ingress_rule" "admins" {
  for_each          = toset(var.admin.cidrs)
  security_group_id = aws_security_group.servers.id
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = 22
  to_port           = 22
}

resource "aws_vpc_security_group_ingress_rule" "metrics" {
  for_each          = toset(var.prometheus_cidrs)
  security_group_id = aws_security_group.servers.id
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = 9464
  to_port           = 9464
}

# A resource of its own, so that a replacement machine keeps the address.
resource "aws_network_interface" "servers" {
  for_each        = local.machines
  description     = each.value
  subnet_id       = var.subnet_id
  security_groups = [aws_security_group.servers.id]
  interface_type  = "efa"
  tags            = { Name = each.value }
}

resource "aws_ebs_volume" "data" {
  for_each          = local.machines
  availability_zone = var.availability_zone
  size              = var.data_disk_gb
  type              = "gp3"
  iops              = var.data_disk_speed.iops
  throughput        = var.data_disk_speed.mb_per_s
  encrypted         = true
  tags              = { Name = "${each.value}-data" }
}

module "machine" {
  source         = "../machine"
  for_each       = var.servers
  name           = each.key
  coordinator    = var.coordinator
  join_token     = var.join_tokens[each.key]
  release        = var.release
  listen         = "${aws_network_interface.servers[each.key].private_ip}:${var.port}"
  region         = var.region
  failure_domain = each.value.failure_domain
  capacity       = var.capacity
  redis_url      = var.redis_url
  otlp_endpoint  = var.otlp_endpoint
  collector      = var.collector
  data_device    = "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_${local.volumes[each.key]}"
  ofi_provider   = "efa"
  transport      = var.transport
}

resource "aws_key_pair" "admin" {
  key_name   = "${var.name}-admin"
  public_key = var.admin.ssh_public_key
}

resource "aws_launch_template" "servers" {
  for_each               = local.machines
  name                   = each.value
  image_id               = var.image_id
  instance_type          = local.machine_type
  key_name               = aws_key_pair.admin.key_name
  user_data              = base64encode(module.machine[each.key].user_data)
  update_default_version = true

  placement {
    group_name = aws_placement_group.fleet.name
  }
  network_interfaces {
    network_interface_id = aws_network_interface.servers[each.key].id
    device_index         = 0
    network_card_index   = 0
  }
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required" # user data holds the join token, so a blind request must not read it
    http_put_response_hop_limit = 1
  }
  tag_specifications {
    resource_type = "instance"
    tags          = { Name = each.value }
  }
}

resource "aws_instance" "servers" {
  for_each = local.machines
  launch_template {
    id      = aws_launch_template.servers[each.key].id
    version = aws_launch_template.servers[each.key].latest_version
  }
  root_block_device { encrypted = true }
  # The firewall rules exist before the machine, and are deleted after it.
  depends_on = [
    aws_vpc_security_group_ingress_rule.peers,
    aws_vpc_security_group_ingress_rule.clients,
    aws_vpc_security_group_ingress_rule.admins,
    aws_vpc_security_group_ingress_rule.metrics,
    aws_vpc_security_group_egress_rule.peers,
    aws_vpc_security_group_egress_rule.anywhere,
  ]
  lifecycle {
    # Only the first start reads it. A new release or token must not replace serving machines.
    ignore_changes = [launch_template, root_block_device]
  }
}

resource "aws_volume_attachment" "data" {
  for_each                       = local.machines
  device_name                    = "/dev/sdf" # AWS requires a name; the machine finds the disk by the volume's id
  volume_id                      = aws_ebs_volume.data[each.key].id
  instance_id                    = aws_instance.servers[each.key].id
  stop_instance_before_detaching = true
}
