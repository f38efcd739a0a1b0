terraform {
  required_version = ">= 1.11" # a join token is an argument that is written and never kept
  required_providers {
    quorate-local = { source = "quorate/quorate-local" }
  }
}
