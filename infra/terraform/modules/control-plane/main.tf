# One machine with coordinator, API, worker and collector. There is one coordinator, whose HTTP interface is not encrypted
# and stays on loopback. The API needs the coordinator, so sharing its machine costs no availability. Appends pass none of
# these processes: groups serve on without them, unchanged.

locals {
  redis_url = "redis://${aws_elasticache_replication_group.control.primary_endpoint_address}:${local.ports.redis}/0"
}

module "machine" {
  source           = "../control-machine"
  name             = var.name
  database_url     = "postgresql://${aws_db_instance.control.username}:${var.database_password}@${aws_db_instance.control.endpoint}/${aws_db_instance.control.db_name}?sslmode=require"
  redis_url        = local.redis_url
  public_url       = var.public_url
  api_port         = local.ports.api
  coordinator_port = local.ports.coordinator
  traces_endpoint  = var.traces_endpoint
  data_device      = "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_${replace(aws_ebs_volume.control.id, "-", "")}"
  releases         = var.releases
}

# A resource of its own, so that a replacement machine keeps the address that servers know.
resource "aws_network_interface" "control" {
  description     = "${var.name}-control"
  subnet_id       = var.private_subnet_ids[0]
  security_groups = [aws_security_group.roles["machine"].id]
}

# The coordinator's log of commands, and the keys. This disk must not be lost.
resource "aws_ebs_volume" "control" {
  availability_zone = var.availability_zone
  size              = 64
  type              = "gp3"
  encrypted         = true
  tags              = { Name = "${var.name}-control" }
  final_snapshot    = true
}

resource "aws_instance" "control" {
  ami              = var.image_id
  instance_type    = var.machine_type
  key_name         = var.ssh_key_name
  user_data_base64 = base64gzip(module.machine.user_data) # AWS takes 16 KiB
  primary_network_interface {
    network_interface_id = aws_network_interface.control.id
  }
  metadata_options {
    http_tokens                 = "required" # user data holds the database's password
    http_put_response_hop_limit = 1
  }
  tags = { Name = "${var.name}-control" }
  # The machine installs releases at its start, and servers reach it until it is deleted.
  depends_on = [
    aws_vpc_security_group_egress_rule.anywhere,
    aws_vpc_security_group_ingress_rule.groups,
    aws_vpc_security_group_ingress_rule.networks,
  ]
  lifecycle {
    # Only the first start reads them.
    ignore_changes = [user_data_base64, ami]
  }
}

resource "aws_volume_attachment" "control" {
  device_name                    = "/dev/sdf"
  volume_id                      = aws_ebs_volume.control.id
  instance_id                    = aws_instance.control.id
  stop_instance_before_detaching = true
}
