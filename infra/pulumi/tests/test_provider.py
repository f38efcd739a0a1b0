"""The provider's methods, called as Pulumi calls them, against a stand-in for the API over HTTP."""

import pytest
from fake_api import PROJECT, RATE_MAX
from pulumi.runtime.rpc import UNKNOWN

from quorate_pulumi import provider as module
from quorate_pulumi.provider import GroupProvider
from quorate_pulumi.words import GroupError

provider = GroupProvider()


def create(props):
    made = provider.create(provider.check({}, props).inputs)
    return made.id, made.outs


def failures(props, olds=None):
    return {failure.property: failure.reason for failure in provider.check(olds or {}, props).failures}


def test_creates_a_group_and_waits_until_it_serves(api, props):
    api.provisioning = 2
    group_id, outs = create(props)
    assert api.groups[group_id]["status"] == "active"
    ((_, path, body, key),) = api.called("POST", "/groups")
    assert path == f"/v1/projects/{PROJECT}/groups"
    assert body == {
        "name": "orders",
        "durability": "persistent",
        "replication_degree": 3,
        "request_size_bytes": 64,
        "rate_per_s": 5000,
        "region": "local",
        "retention_bytes": 256 << 20,
        "latency": "standard",
        "read_rate_per_s": 0,
    }
    assert all(isinstance(value, int) for name, value in body.items() if name.endswith(("_s", "_bytes", "_degree")))
    assert key.startswith("pulumi-")
    assert outs["group_id"] == group_id
    assert outs["monthly_micros"] == 73_000
    assert outs["api_key"] == "qk_manage"


def test_a_group_that_never_serves_is_made_all_the_same(api, props, monkeypatch):
    monkeypatch.setattr(module, "READY_S_MAX", 0.0)
    api.provisioning = 100
    group_id, _ = create(props)
    assert api.groups[group_id]["status"] == "provisioning"


def test_what_an_interrupted_run_made_is_found_again(api, props):
    api.lose_answers = 100
    with pytest.raises(GroupError, match=r"unknown; run again"):
        provider.create(props)
    assert len(api.groups) == 1
    api.lose_answers = 0
    group_id, _ = create(props)
    assert list(api.groups) == [group_id]
    assert len({key for *_, key in api.called("POST", "/groups")}) == 1


def test_what_an_interrupted_run_made_is_not_in_its_own_way(api, props):
    props["rate_per_s"] = 6000.0
    group_id, _ = create(props)
    assert not failures(props)
    assert create(props)[0] == group_id
    assert list(failures({**props, "name": "second"})) == ["rate_per_s"]


def test_another_stack_does_not_take_it_over(api, props):
    create(props)
    with pytest.raises(GroupError, match="name: the project has a group of this name already") as caught:
        create({**props, "owner": "shop/prod/orders"})
    assert caught.value.attribute == "name"


def test_a_group_deleted_within_the_day_is_made_anew(api, props):
    first, outs = create(props)
    provider.delete(first, outs)
    second, _ = create(props)
    assert list(api.groups) == [second]
    assert second != first


def test_a_group_that_is_being_deleted_is_not_taken_over(api, props):
    first, _ = create(props)
    api.groups[first]["status"], api.deleting = "deleting", 3
    second, outs = create(props)
    assert second != first
    assert api.groups[second]["status"] == "active"
    assert outs["group_id"] == second
    assert len({key for *_, key in api.called("POST", "/groups")}) == 2


def test_a_group_whose_deletion_takes_long_is_not_made_yet(api, props, monkeypatch):
    first, _ = create(props)
    monkeypatch.setattr(module, "GONE_S_MAX", 0.0)
    api.groups[first]["status"] = "deleting"
    with pytest.raises(GroupError, match="is being deleted, which takes its time; run again"):
        provider.create(props)


def test_a_refusal_names_the_scarce_resource_and_the_attribute(api, props):
    with pytest.raises(GroupError) as caught:
        provider.create({**props, "rate_per_s": 20_000.0})
    assert caught.value.attribute == "rate_per_s"
    text = str(caught.value)
    assert "making the group 'orders': rate_per_s: the fleet cannot promise this SLA now. Scarce: cpu." in text
    assert f"An SLA that would fit now: rate_per_s = {RATE_MAX}." in text
    assert "request req_1" in text
    assert "qk_" not in text


def test_an_over_ask_is_refused_before_anything_is_made(api, props):
    reasons = failures({**props, "rate_per_s": 20_000.0})
    assert list(reasons) == ["rate_per_s"]
    assert "Scarce: cpu" in reasons["rate_per_s"]
    assert list(failures({**props, "region": "mars"})) == ["region"]
    assert not api.called("POST", "/groups")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("durability", "often"),
        ("durability", None),
        ("replication_degree", 8.0),
        ("replication_degree", None),
        ("rate_per_s", 1.5),
        ("rate_per_s", True),
        ("rate_per_s", "many"),
        ("request_size_bytes", 0.0),
        ("min_replicas", 4.0),
        ("retention_bytes", 5.0),
        ("retention_age_s", 1.0),
        ("latency", "lowest"),
        ("name", "n" * 101),
        ("name", ""),
        ("project_id", None),
        ("api_url", "api.example"),
        ("api_url", "http://api.example"),
        ("api_url", "http://localhost.example:8080"),
        ("api_url", "http://10.0.0.1"),
        ("api_url", "http://[::1"),
        ("api_url", "ftp://api.example"),
        ("api_key", "secret"),
        ("on_sla_change", "ignore"),
    ],
)
def test_check_names_what_is_wrong_without_asking_the_api(api, props, name, value):
    assert list(failures({**props, name: value})) == [name]
    assert not api.calls


@pytest.mark.parametrize(
    ("address", "allow_http"),
    [
        ("https://api.example", False),
        ("http://localhost:8080", False),
        ("http://127.0.0.2:8080", False),
        ("http://[::1]:8080", False),
        ("http://api.example", True),
        ("http://api.example", UNKNOWN),
    ],
)
def test_keys_go_unencrypted_to_this_machine_or_where_it_was_allowed(props, address, allow_http):
    # Without a project the API is not called, and this is the only error.
    wrong = failures({**props, "api_url": address, "allow_http": allow_http, "project_id": None})
    assert list(wrong) == ["project_id"]


def test_check_lets_pass_what_is_unknown_until_the_apply(api, props):
    assert not failures({**props, "project_id": UNKNOWN, "api_key": UNKNOWN, "rate_per_s": UNKNOWN})
    assert not api.calls


def test_nothing_changed_is_no_difference(api, props):
    group_id, outs = create(props)
    found = provider.diff(group_id, outs, provider.check(outs, props).inputs)
    assert (found.changes, found.replaces) == (False, [])


def test_a_resize_is_in_place(api, props):
    group_id, outs = create({**props, "min_replicas": 2.0})
    news = {**props, "rate_per_s": 6000.0}
    found = provider.diff(group_id, outs, news)
    assert (found.changes, found.replaces) == (True, [])
    outs = provider.update(group_id, outs, news).outs
    ((*_, body, _),) = api.called("PATCH")
    assert body == {"rate_per_s": 6000, "min_replicas": None}
    assert outs["rate_per_s"] == 6000
    assert "min_replicas" not in outs
    assert provider.diff(group_id, outs, news).changes is False


def test_a_resize_ends_once_replicas_have_moved(api, props, monkeypatch):
    group_id, outs = create(props)
    news = {**props, "rate_per_s": 6000.0}
    api.moving = 3
    assert provider.update(group_id, outs, news).outs["rate_per_s"] == 6000
    api.moving = 1_000
    monkeypatch.setattr("quorate_pulumi.provider.MOVED_S_MAX", 0.1)
    with pytest.raises(GroupError, match=r"replicas move .* goes on; run again"):
        provider.update(group_id, outs, {**props, "rate_per_s": 7000.0})


def test_partitions_are_added_in_place_and_never_removed(api, props):
    group_id, outs = create(props)
    assert outs["partitions"] == 1
    news = {**props, "partitions": 4.0}
    assert provider.diff(group_id, outs, news).changes
    outs = provider.update(group_id, outs, news).outs
    assert (outs["partitions"], api.groups[group_id]["partitions"]) == (4, 4)
    assert provider.diff(group_id, outs, news).changes is False
    with pytest.raises(GroupError, match=r"4 partitions.*never removed") as caught:
        provider.diff(group_id, outs, {**props, "partitions": 2.0})
    assert caught.value.attribute == "partitions"
    assert list(failures({**props, "name": "other", "partitions": 257.0})) == ["partitions"]


def test_its_own_reservation_does_not_count_against_a_resize(api, props):
    group_id, outs = create(props)
    assert provider.diff(group_id, outs, {**props, "rate_per_s": float(RATE_MAX)}).changes
    with pytest.raises(GroupError, match=r"resizing .* rate_per_s: .* Scarce: cpu\..* The group is unchanged"):
        provider.diff(group_id, outs, {**props, "rate_per_s": RATE_MAX + 1.0})
    with pytest.raises(GroupError, match="Scarce: cpu") as caught:
        provider.update(group_id, outs, {**props, "rate_per_s": RATE_MAX + 1.0})
    assert caught.value.attribute == "rate_per_s"
    assert api.groups[group_id]["sla"]["rate_per_s"] == 5000


@pytest.mark.parametrize(("name", "value"), [("durability", "in_memory"), ("replication_degree", 5.0), ("region", "b")])
def test_a_fixed_field_of_a_group_changes_only_by_consent(api, props, name, value):
    group_id, outs = create(props)
    with pytest.raises(GroupError, match="would delete its log") as caught:
        provider.diff(group_id, outs, {**props, name: value})
    assert caught.value.attribute == name
    found = provider.diff(group_id, outs, {**props, name: value, "on_sla_change": "replace"})
    assert (found.replaces, found.delete_before_replace) == ([name], True)
    assert provider.diff(group_id, outs, {**props, name: UNKNOWN}).replaces == []


@pytest.mark.parametrize("name", ["name", "project_id"])
def test_another_name_or_project_is_another_group(api, props, name):
    group_id, outs = create(props)
    found = provider.diff(group_id, outs, {**props, name: "other"})
    assert (found.replaces, found.delete_before_replace) == ([name], False)


def test_a_new_key_is_tried_and_kept(api, props):
    group_id, outs = create(props)
    news = {**props, "api_key": "qk_other"}
    assert provider.diff(group_id, outs, news).changes
    assert provider.update(group_id, outs, news).outs["api_key"] == "qk_other"
    assert not api.called("PATCH")
    with pytest.raises(GroupError, match="api_key: the API does not know this key") as caught:
        provider.update(group_id, outs, {**props, "api_key": "qk_revoked"})
    assert "qk_revoked" not in str(caught.value)


def test_a_key_without_the_right_is_refused_with_the_reason(api, props):
    with pytest.raises(GroupError, match="api_key: the key does not permit it"):
        create({**props, "api_key": "qk_app"})


def test_reading_finds_what_others_changed(api, props):
    group_id, outs = create(props)
    api.groups[group_id]["sla"]["rate_per_s"] = 7000
    found = provider.read(group_id, outs)
    assert (found.id, found.outs["rate_per_s"], found.inputs["rate_per_s"]) == (group_id, 7000, 7000)
    assert "group_id" not in found.inputs
    assert provider.diff(group_id, found.outs, props).changes


def test_reading_tells_that_it_is_gone(api, props):
    group_id, outs = create(props)
    api.groups[group_id]["status"] = "deleting"
    assert provider.read(group_id, outs).id == ""
    api.groups.clear()
    assert provider.read(group_id, outs).id == ""
    with pytest.raises(GroupError, match="cannot be imported"):
        provider.read(group_id, {})


def test_deleting_is_done_when_it_is_gone_and_twice_does_no_harm(api, props):
    group_id, outs = create(props)
    provider.delete(group_id, outs)
    assert not api.groups
    provider.delete(group_id, outs)


def test_a_deletion_that_takes_long_is_not_called_done(api, props, monkeypatch):
    group_id, outs = create(props)
    monkeypatch.setattr(module, "GONE_S_MAX", 0.0)
    with pytest.raises(GroupError, match="The deletion is noted and goes on"):
        provider.delete(group_id, outs)


def test_no_such_project(api, props):
    with pytest.raises(GroupError, match="No such project"):
        create({**props, "project_id": "01930f3c-5f4e-7cc3-98c4-dc0c0c073981"})
