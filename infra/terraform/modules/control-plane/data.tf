# AWS's managed PostgreSQL and Redis.

resource "aws_db_subnet_group" "control" {
  name       = var.name
  subnet_ids = var.private_subnet_ids
}

resource "aws_db_parameter_group" "control" {
  name   = "${var.name}-postgres16"
  family = "postgres16"
  parameter {
    name  = "rds.force_ssl"
    value = "1"
  }
}

resource "aws_db_instance" "control" {
  identifier                   = var.name
  engine                       = "postgres"
  engine_version               = "16"
  instance_class               = var.database_type
  db_name                      = "quorate"
  username                     = "quorate"
  password                     = var.database_password
  allocated_storage            = 100
  max_allocated_storage        = 1000
  storage_type                 = "gp3"
  storage_encrypted            = true
  multi_az                     = true
  backup_retention_period      = 14
  copy_tags_to_snapshot        = true
  deletion_protection          = true
  skip_final_snapshot          = false
  final_snapshot_identifier    = "${var.name}-last"
  performance_insights_enabled = true
  db_subnet_group_name         = aws_db_subnet_group.control.name
  parameter_group_name         = aws_db_parameter_group.control.name
  vpc_security_group_ids       = [aws_security_group.roles["database"].id]
}

resource "aws_elasticache_subnet_group" "control" {
  name       = var.name
  subnet_ids = var.private_subnet_ids
}

resource "aws_elasticache_parameter_group" "control" {
  name   = "${var.name}-redis7"
  family = "redis7"
  parameter {
    name  = "maxmemory-policy"
    value = "noeviction" # it holds unread usage, which is billed
  }
}

resource "aws_elasticache_replication_group" "control" {
  replication_group_id       = var.name
  description                = "Quorate's telemetry until the worker has read it"
  engine                     = "redis"
  engine_version             = "7.1"
  node_type                  = var.redis_type
  num_cache_clusters         = 2
  automatic_failover_enabled = true
  multi_az_enabled           = true
  at_rest_encryption_enabled = true
  # Replica servers speak no TLS to Redis, and AWS supports passwords with TLS only. The security group keeps others
  # out.
  transit_encryption_enabled = false
  parameter_group_name       = aws_elasticache_parameter_group.control.name
  subnet_group_name          = aws_elasticache_subnet_group.control.name
  security_group_ids         = [aws_security_group.roles["redis"].id]
}
