"""The package's copy of the API's bounds and refusals, compared with the contract."""

import json
import re
from pathlib import Path

import pytest

from quorate_pulumi import guarantee, sla
from quorate_pulumi.words import refusal_in_words

CONTRACT = Path(__file__).parents[3] / "sdk/contract"
SCHEMAS = json.loads((CONTRACT / "openapi.json").read_text())["components"]["schemas"]
REFUSALS = json.loads((CONTRACT / "vectors/refusals.json").read_text())["cases"]


def number(field, required):
    bounds = next(choice for choice in field.get("anyOf", [field]) if choice["type"] == "integer")
    return sla.Number(bounds["minimum"], bounds["maximum"], required, field.get("default"))


@pytest.mark.parametrize("schema", ["NewGroup", "QuoteRequest"])
def test_bounds_and_defaults_are_the_contracts(schema):
    fields, required = SCHEMAS[schema]["properties"], SCHEMAS[schema]["required"]
    # Stacks here are short-lived: their groups are not protected from deletion.
    assert set(sla.SLA) == set(fields) - {"name", "replaces_group_id", "project_id", "deletion_protection"}
    if schema == "QuoteRequest":
        assert fields["partitions"].get("default") is None  # or as many as the group has
        fields = {**fields, "partitions": {**fields["partitions"], "default": sla.NUMBERS["partitions"].default}}
    numbers = {name: number(fields[name], name in required) for name in sla.NUMBERS}
    assert numbers == sla.NUMBERS
    assert set(sla.SLA) - set(sla.NUMBERS) == {"durability", "region", "latency"}
    assert list(sla.DURABILITIES) == fields["durability"]["enum"]
    assert list(sla.LATENCIES) == fields["latency"]["enum"]
    assert fields["latency"]["default"] == sla.LATENCY_DEFAULT
    assert fields["region"]["default"] == sla.REGION_DEFAULT
    assert fields.get("name", {"maxLength": sla.NAME_LENGTH_MAX})["maxLength"] == sla.NAME_LENGTH_MAX


def test_the_bounds_of_a_guarantee_are_the_contracts():
    terms, group = SCHEMAS["GuaranteeTerms"]["properties"], SCHEMAS["PolicyGroup"]["properties"]
    assert terms["shared_tokens_per_s"]["maximum"] == guarantee.TOKENS_MAX
    assert (group["weight"]["minimum"], group["weight"]["maximum"]) == (1, guarantee.WEIGHT_MAX)
    assert list(guarantee.POLICIES) == SCHEMAS["LocalPolicy"]["properties"]["name"]["enum"]


def test_a_resize_changes_fields_that_are_not_fixed():
    assert set(SCHEMAS["Resize"]["properties"]) == set(sla.IN_PLACE)


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: f"{case['reason']}-{case['scarce_resource']}")
def test_a_refusal_is_shown_where_the_vectors_say(case):
    refusal = {
        **case,
        "message": "Too much.",
        "largest_sla_that_fits": {"rate_per_s": 6000, "retention_bytes": 1 << 20, "latency": "standard"},
    }
    attribute, text = refusal_in_words(refusal)
    assert attribute == case["attribute"]
    assert f"Scarce: {case['scarce_resource']}. Too much." in text
    more = {"retention_bytes": ", retention_bytes = 1048576", "latency": ", latency = standard"}.get(attribute, "")
    assert f"An SLA that would fit now: rate_per_s = 6000{more}." in text


@pytest.mark.parametrize("field", ["reason", "scarce_resource"])
def test_the_vectors_have_every_code_of_the_contract(field):
    codes = re.findall(r"[a-z_]+", SCHEMAS["Refusal"]["properties"][field]["description"])
    assert {case[field] for case in REFUSALS} == set(codes) - {"or"}
