# Three machines in three zones, each with coordinator, API, worker and collector. Coordinators agree by majority, so any one
# machine may be lost. Appends pass none of these processes: groups serve on without them, unchanged.

locals {
  database = "${aws_db_instance.control.endpoint}/${aws_db_instance.control.db_name}?sslmode=require"
  # Another password for processes than for the owner, without another secret to keep.
  login_password = sha256("quorate database login ${var.keys_seed}")
  redis_url      = "redis://${aws_elasticache_replication_group.control.primary_endpoint_address}:${local.ports.redis}/0"
  machines       = { for index, zone in var.availability_zones : tostring(index) => zone }
  addresses      = [for index in range(length(var.availability_zones)) : aws_network_interface.control[tostring(index)].private_ip]
}

module "machine" {
  source       = "../control-machine"
  for_each     = local.machines
  name         = var.name
  index        = tonumber(each.key)
  addresses    = local.addresses
  keys_seed    = var.keys_seed
  database_url = "postgresql://quorate_login:${local.login_password}@${local.database}"

  database_owner_url = "postgresql://${aws_db_instance.control.username}:${var.database_password}@${local.database}"
  redis_url          = local.redis_url
  public_url         = var.public_url
  ports              = { for name in ["api", "coordinator", "coordinator_http", "members"] : name => local.ports[name] }
  traces_endpoint    = var.traces_endpoint
  data_device        = "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_${replace(aws_ebs_volume.control[each.key].id, "-", "")}"
  releases           = var.releases
  settings           = var.settings
  secret_files       = var.secret_files
}

# Resources of their own, so that a replacement machine keeps the address that servers know.
resource "aws_network_interface" "control" {
  for_each        = local.machines
  description     = "${var.name}-control-${each.key}"
  subnet_id       = var.private_subnet_ids[tonumber(each.key)]
  security_groups = [aws_security_group.roles["machine"].id]
}

# A coordinator's log, and the keys. One of them may be lost, and a majority must not.
resource "aws_ebs_volume" "control" {
  for_each          = local.machines
  availability_zone = each.value
  size              = 64
  type              = "gp3"
  encrypted         = true
  tags              = { Name = "${var.name}-control-${each.key}" }
  final_snapshot    = true
}

resource "aws_instance" "control" {
  for_each         = local.machines
  ami              = var.image_id
  instance_type    = var.machine_type
  key_name         = var.ssh_key_name
  user_data_base64 = base64gzip(module.machine[each.key].user_data) # AWS takes 16 KiB
  primary_network_interface {
    network_interface_id = aws_network_interface.control[each.key].id
  }
  root_block_device { encrypted = true }
  metadata_options {
    http_tokens                 = "required" # user data holds the database's password and the keys' seed
    http_put_response_hop_limit = 1
  }
  tags = { Name = "${var.name}-control-${each.key}" }
  # The machine installs releases at its start, and servers reach it until it is deleted.
  depends_on = [
    aws_vpc_security_group_egress_rule.anywhere,
    aws_vpc_security_group_ingress_rule.groups,
    aws_vpc_security_group_ingress_rule.networks,
  ]
  lifecycle {
    # Only the first start reads them.
    ignore_changes = [user_data_base64, ami, root_block_device]
  }
}

resource "aws_volume_attachment" "control" {
  for_each                       = local.machines
  device_name                    = "/dev/sdf"
  volume_id                      = aws_ebs_volume.control[each.key].id
  instance_id                    = aws_instance.control[each.key].id
  stop_instance_before_detaching = true
}
