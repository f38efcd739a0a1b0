"""A project's guarantee: tokens that all its groups share, and how its owner divides them."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from quorate_api import limits
from quorate_api.http.schemas import Input, Name, Output

PolicyName = Literal["drf", "hierarchical_drf", "first_fit", "maximum_revenue"]
Tokens = Annotated[int, Field(ge=0, le=limits.GUARANTEE_TOKENS_PER_S_MAX)]


class PolicyGroup(Input):
    """A group that the policy treats otherwise than the others, which have weight 1 and no class."""

    group_id: Annotated[UUID, Field(strict=False)]
    weight: int = Field(
        1,
        ge=1,
        le=limits.GUARANTEE_WEIGHT_MAX,
        description="DRF: the proportion of its share. Maximum revenue: the worth of a token.",
    )
    # `class` is the name in JSON.
    class_name: Name | None = Field(
        None,
        alias="class",
        description="Hierarchical DRF gives equal parts to classes, and divides each among its groups.",
    )


class LocalPolicy(Input):
    """How the shared tokens are divided among the groups that want them."""

    name: PolicyName = Field(
        "drf",
        description="drf: in the proportion of weights. hierarchical_drf: equal parts for classes first. first_fit: in "
        "the order of `groups`. maximum_revenue: the highest weight first.",
    )
    groups: list[PolicyGroup] = Field(default_factory=list, max_length=limits.GUARANTEE_POLICY_GROUPS_MAX)


class GuaranteeTerms(Input):
    shared_tokens_per_s: Tokens = Field(
        description="Tokens each second that any group of the project may use, beside its own rate."
    )
    max_tokens_per_s: Tokens | None = Field(
        None,
        description="Tokens each second that all groups together may use, own rates and idle capacity included. null: "
        "no limit. Equal to the groups' own tokens and the shared ones: no idle capacity.",
    )
    policy: LocalPolicy = Field(default_factory=LocalPolicy)


class GuaranteePrice(Output):
    hourly_micros: int
    monthly_micros: int = Field(description="Price of 730 hours. Billing is by the second.")
    currency: str


class GuaranteedGroup(Output):
    """A group of the project, and what the guarantee means for it. Appends are of its declared size."""

    group_id: UUID
    name: str
    tokens_per_append: float
    own_tokens_per_s: int
    own_appends_per_s: int
    most_appends_per_s: int = Field(description="With all of the shared tokens. One shard may serve less.")
    wanted_per_s: int | None = Field(description="Appends/s that it wants beside its own rate now; null: not known.")
    share_per_s: int | None = Field(description="Appends/s of the shared tokens that it has now; null: not known.")


class ProjectGuarantee(Output):
    project_id: UUID
    shared_tokens_per_s: int = Field(description="0: the project has no guarantee, or one with a maximum alone.")
    max_tokens_per_s: int | None
    policy: LocalPolicy
    revision: int = Field(description="1, and one more for each change; 0: there was none.")
    since: datetime | None = Field(description="Begin of the present guarantee; null: there is none.")
    is_settled: bool = Field(description="false: the answer to a change was lost; it is asked for again.")
    own_tokens_per_s: int = Field(description="The groups' own rates in tokens.")
    price: GuaranteePrice
    groups: list[GuaranteedGroup]


class GuaranteeRefusal(Output):
    """The reason why a guarantee cannot be promised now."""

    scarce_resource: str = Field(description="cpu, network, storage_io, memory or disk")
    message: str
    largest_shared_tokens_per_s: int = Field(description="Would fit now.")


class GuaranteeQuote(Output):
    admissible: bool
    price: GuaranteePrice
    refusal: GuaranteeRefusal | None = Field(description="null if admissible")
