"""Terraform's modules checked with nothing but what npm and this machine have: see docs/operating/terraform-modules.md."""
