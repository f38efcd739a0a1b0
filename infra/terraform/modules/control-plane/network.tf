# Network rules: the world reaches the load balancer, the load balancer the API, servers the coordinators and Redis, machines one another.

locals {
  ports = { api = 8080, metrics = 9464, coordinator = 7300, coordinator_http = 7301, members = 7302, database = 5432, redis = 6379 }

  from_groups = {
    api      = { to = "machine", from = "balancer", port = local.ports.api }
    database = { to = "database", from = "machine", port = local.ports.database }
    redis    = { to = "redis", from = "machine", port = local.ports.redis }
    http     = { to = "machine", from = "machine", port = local.ports.coordinator_http }
    members  = { to = "machine", from = "machine", port = local.ports.members }
  }
  from_networks = merge(
    { for cidr in var.public_cidrs : "https-${cidr}" => { to = "balancer", cidr = cidr, port = 443 } },
    { for cidr in var.public_cidrs : "http-${cidr}" => { to = "balancer", cidr = cidr, port = 80 } },
    { for cidr in var.server_cidrs : "coordinator-${cidr}" => { to = "machine", cidr = cidr, port = local.ports.coordinator } },
    { for cidr in var.server_cidrs : "redis-${cidr}" => { to = "redis", cidr = cidr, port = local.ports.redis } },
    { for cidr in var.prometheus_cidrs : "metrics-${cidr}" => { to = "machine", cidr = cidr, port = local.ports.metrics } },
    var.ssh_key_name == null ? {} : { for cidr in var.server_cidrs : "ssh-${cidr}" => { to = "machine", cidr = cidr, port = 22 } },
  )
}

resource "aws_security_group" "roles" {
  for_each    = toset(["balancer", "machine", "database", "redis"])
  name        = "${var.name}-${each.key}"
  description = "Quorate's control plane: ${each.key}"
  vpc_id      = var.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "groups" {
  for_each                     = local.from_groups
  security_group_id            = aws_security_group.roles[each.value.to].id
  referenced_security_group_id = aws_security_group.roles[each.value.from].id
  ip_protocol                  = "tcp"
  from_port                    = each.value.port
  to_port                      = each.value.port
}

resource "aws_vpc_security_group_ingress_rule" "networks" {
  for_each          = local.from_networks
  security_group_id = aws_security_group.roles[each.value.to].id
  cidr_ipv4         = each.value.cidr
  ip_protocol       = "tcp"
  from_port         = each.value.port
  to_port           = each.value.port
}

resource "aws_vpc_security_group_egress_rule" "anywhere" {
  for_each          = toset(["balancer", "machine"])
  security_group_id = aws_security_group.roles[each.key].id
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}

resource "aws_lb" "api" {
  name                       = var.name
  load_balancer_type         = "application"
  subnets                    = var.public_subnet_ids
  security_groups            = [aws_security_group.roles["balancer"].id]
  drop_invalid_header_fields = true
  idle_timeout               = 300 # live charts are long answers
}

resource "aws_lb_target_group" "api" {
  name        = var.name
  vpc_id      = var.vpc_id
  target_type = "instance"
  protocol    = "HTTP"
  port        = local.ports.api
  health_check {
    path    = "/v1/ready"
    matcher = "200"
  }
}

resource "aws_lb_target_group_attachment" "api" {
  for_each         = local.machines
  target_group_arn = aws_lb_target_group.api.arn
  target_id        = aws_instance.control[each.key].id
  port             = local.ports.api
}

resource "aws_lb_listener" "https" {
  load_balancer_arn = aws_lb.api.arn
  protocol          = "HTTPS"
  port              = 443
  ssl_policy        = "ELBSecurityPolicy-TLS13-1-2-2021-06"
  certificate_arn   = var.certificate_arn
  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.api.arn
  }
}

resource "aws_lb_listener" "http" {
  load_balancer_arn = aws_lb.api.arn
  protocol          = "HTTP"
  port              = 80
  default_action {
    type = "redirect"
    redirect {
      protocol    = "HTTPS"
      port        = "443"
      status_code = "HTTP_301"
    }
  }
}
