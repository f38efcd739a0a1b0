"""Signs up at a Quorate of one's own and buys a small group: what the portal does, for a command line.

Prints the three variables that the README's example wants, as shell commands.
"""

from __future__ import annotations

import argparse
import shlex

from quorate_harness.customer import Customer

SLA = {"durability": "persistent", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 1_000}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m quorate_demo.sign_up", description=__doc__)
    parser.add_argument("api_url", help="as `make up` prints it")
    parser.add_argument("--organization", default="first-steps")
    arguments = parser.parse_args()
    with Customer(arguments.api_url, arguments.organization) as customer:
        group = customer.create_group("orders", SLA)
        variables = {
            "QUORATE_API_URL": customer.api_url,
            "QUORATE_API_KEY": customer.api_key,
            "QUORATE_GROUP_ID": group["id"],
        }
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")
    print(f"# in the portal: {customer.email}, password {customer.password}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
