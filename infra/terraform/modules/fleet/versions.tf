terraform {
  required_version = ">= 1.9"
  required_providers {
    quorate = { source = "quorate/quorate" }
  }
}
