terraform {
  required_version = ">= 1.11" # a join token is a write-only argument
  required_providers {
    quorate-local = { source = "quorate/quorate-local" }
  }
}
