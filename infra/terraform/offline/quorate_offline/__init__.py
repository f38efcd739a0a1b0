"""Terraform's modules checked with no cloud: see docs/operating/terraform-modules.md."""
