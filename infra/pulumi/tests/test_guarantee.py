"""The guarantee's provider as Pulumi calls it, and the resource with Pulumi's mocks."""

import pytest
from engine import run
from fake_api import PROJECT, TOKENS_MAX
from pulumi.runtime.rpc import UNKNOWN

from quorate_pulumi import ProjectGuarantee, ProjectGuaranteeArgs
from quorate_pulumi.guarantee import GuaranteeProvider
from quorate_pulumi.words import GroupError

provider = GuaranteeProvider()
GROUP = "01930f3c-5f4e-7cc3-98c4-dc0c0c073981"


@pytest.fixture
def terms(api):
    """As Pulumi's engine passes them: every number is a float."""
    return {"api_url": api.url, "api_key": "qk_manage", "project_id": PROJECT, "shared_tokens_per_s": 1000.0}


def create(terms):
    made = provider.create(provider.check({}, terms).inputs)
    return made.id, made.outs


def failures(terms):
    return {failure.property: failure.reason for failure in provider.check({}, terms).failures}


def test_is_given_changed_and_taken_back(api, terms):
    id_, outs = create(terms)
    assert (id_, outs["monthly_micros"]) == (PROJECT, 730_000)
    expected = {"shared_tokens_per_s": 1000, "max_tokens_per_s": None, "policy": {"name": "drf", "groups": []}}
    assert api.guarantees == {PROJECT: expected}
    more = {**terms, "policy": "first_fit", "groups": [{"group_id": GROUP, "weight": 2.0}], "max_tokens_per_s": 9000.0}
    diff = provider.diff(id_, outs, provider.check(outs, more).inputs)
    assert (diff.changes, diff.replaces) == (True, [])
    changed = provider.update(id_, outs, more).outs
    assert api.guarantees[PROJECT]["policy"] == {"name": "first_fit", "groups": [{"group_id": GROUP, "weight": 2}]}
    assert provider.diff(id_, changed, more).changes is False
    read = provider.read(id_, changed)
    assert (read.id, read.outs) == (PROJECT, changed)
    provider.delete(id_, changed)
    provider.delete(id_, changed)
    assert api.guarantees == {}
    assert provider.read(id_, changed).id == ""


def test_another_project_is_another_guarantee(api, terms):
    id_, outs = create(terms)
    assert provider.diff(id_, outs, {**terms, "project_id": GROUP}).replaces == ["project_id"]
    with pytest.raises(GroupError, match="there is no such project"):
        provider.create({**terms, "project_id": GROUP})


def test_a_refusal_names_its_attribute(api, terms):
    with pytest.raises(GroupError, match=f"{TOKENS_MAX} fit now") as caught:
        provider.create({**terms, "shared_tokens_per_s": TOKENS_MAX + 1.0})
    assert caught.value.attribute == "shared_tokens_per_s"
    assert "qk_" not in str(caught.value)


def test_what_is_wrong_is_said_before_anything_is_asked(api, terms):
    assert failures(terms) == {}
    assert list(failures({**terms, "shared_tokens_per_s": 1.5})) == ["shared_tokens_per_s"]
    assert list(failures({**terms, "max_tokens_per_s": 0.0})) == ["max_tokens_per_s"]
    assert "one of drf" in failures({**terms, "policy": "best"})["policy"]
    for weight in (0.0, 1.5, float("nan")):
        assert list(failures({**terms, "groups": [{"group_id": GROUP, "weight": weight}]})) == ["groups"]
    assert list(failures({**terms, "api_url": "http://far.example.test"})) == ["api_url"]
    unknown = {**terms, "project_id": UNKNOWN, "shared_tokens_per_s": UNKNOWN, "groups": UNKNOWN}
    assert failures(unknown) == {}
    assert api.calls == []


def test_the_resource(api, mocks):
    def program():
        args = ProjectGuaranteeArgs(
            api_url=api.url, api_key="qk_manage", project_id=PROJECT, shared_tokens_per_s=1000, policy="maximum_revenue"
        )
        return {"monthly_micros": ProjectGuarantee("all", args).monthly_micros}

    assert run(program)["monthly_micros"] == (730_000, False)
    assert mocks.secret == {"api_key"}
