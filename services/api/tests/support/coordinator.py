"""A coordinator that follows docs/internals/coordinator.md as far as the API can see, with faults on demand."""

import asyncio
import uuid
from datetime import UTC, datetime
from typing import Any, ClassVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from quorate_api.coordinator.schemas import GroupView, ObservedSla

CAPACITY_PER_S = 1_000_000
TOKENS_PER_APPEND = 20


AMOUNTS = {
    "cpu": 2.0,
    "network_bytes_per_s": 1e9,
    "storage_io_per_s": 1e4,
    "memory_bytes": 1 << 34,
    "disk_bytes": 1 << 36,
}
RESOURCES = {"nominal": AMOUNTS, "promisable": AMOUNTS, "allocated": AMOUNTS, "free": AMOUNTS}


def server_view(number: int) -> dict[str, Any]:
    return {
        "server_id": number,
        "name": f"s{number}",
        "address": f"127.0.0.1:{7000 + number}",
        "region": "local",
        "failure_domain": None,
        "auxiliary": False,
        "alive": True,
        "storage_fault": None,
        "version": "0.1.0",
        "resources": RESOURCES,
        "replicas": 2,
        "slow": None,
        "machine": "2 × A processor",
        "foreign": None,
        "takes_replicas": True,
        "draining": False,
        "drain": None,
        "estimated": {
            "cpu": {"capacity": 1.5, "phase": "stable", "is_measured": True, "lasting_permille": 750},
            "storage_io": None,
        },
        "registered_at": datetime.now(UTC).isoformat(),
        "failed_at": None,
    }


CHARGES = {
    "rate_per_s": 1_000,
    "tokens_per_s_milli": [2_000_000_000, 256_000_000, 0],
    "cost": {"fixed_milli": [1_000_000, 128_000, 0], "per_byte_milli": [100, 2_000, 0]},
    "short_batch": {"entries": 16, "lacking_milli": [90_000, 0, 0]},
}

READS = {
    "rate_per_s": 0,
    "reserved_milli": [0, 0, 0],
    "cost": {"fixed_milli": [800_000, 8_000, 0], "per_byte_milli": [250, 1_000, 0]},
    "short_page": {"entries": 16, "lacking_milli": [180_000, 8_000, 0]},
    "from_disk": {"fixed_milli": [200_000, 0, 0], "per_byte_milli": [250, 0, 123]},
}


def _too_much(fits: int) -> dict[str, Any]:
    message = f"s1 has too little CPU free. {fits} fit now."
    refusal = {"scarce_resource": "cpu", "message": message, "largest_shared_tokens_per_s": fits}
    return {"status": 409, "code": "guarantee_refused", "detail": message, "refusal": refusal}


class FakeCoordinator:
    TOKEN: ClassVar[str] = "admin-token"
    # An authority whose key nobody has.
    CA_PEM: ClassVar[str] = (
        "-----BEGIN CERTIFICATE-----\n"
        "MIIBhzCCAS2gAwIBAgIUVdSB2EHk/tyhyzp30vXTyr1O/n8wCgYIKoZIzj0EAwIw\n"
        "GDEWMBQGA1UEAwwNUXVvcmF0ZSBmbGVldDAgFw0yNjExMzAyMTQ2MTlaGA8yMTI2\n"
        "MTEwNjIxNDYxOVowGDEWMBQGA1UEAwwNUXVvcmF0ZSBmbGVldDBZMBMGByqGSM49\n"
        "AgEGCCqGSM49AwEHA0IABEUsjW+LsLFMN5EHGLDa1rwicpOF6t03voG5oHlTXCiS\n"
        "DQXomvySHejXUAzDMWK23Xxrv7hdTKReM8JMvzsMylWjUzBRMB0GA1UdDgQWBBR2\n"
        "5liPRNJvf6Qu0G5b4Lv2DSfOSzAfBgNVHSMEGDAWgBR25liPRNJvf6Qu0G5b4Lv2\n"
        "DSfOSzAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIBIIAXT9LckK\n"
        "fgQPdDagXb569cgs+ySMyES83WM1Sq0uAiEAkn+zq2+ry5+G3x7dwQ9ioMZsuhPi\n"
        "8HKhl7VYh1J+8WA=\n"
        "-----END CERTIFICATE-----\n"
    )

    def __init__(self) -> None:
        self.groups: dict[uuid.UUID, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        self.puts = 0
        self.down = False  # answers 503 to every request
        self.leaderless = False  # no request takes effect
        self.down_after_events = False  # goes away once it has answered a request for events
        self.odd: dict[uuid.UUID, int] = {}  # groups that are answered with this status and half a view
        self.lose_put_answers = 0  # does the work, then the answer is lost
        self.refuse_put_once = False  # admissible when quoted, refused when put
        self.first_event = 1  # older events were trimmed
        self.resets: list[dict[str, Any]] = []  # bodies as received
        self.capacity_gone = False  # a lost group finds no servers
        self.balanced: dict[str, Any] = {  # its last round of balancing, without moves
            "rounds": 3,
            "ended_unix_ms": 1_790_000_000_500,
            "partitions": 4,
            "pressures": [],
            "rate_changes": [],
        }
        self.shares = True  # it computes what groups may use above their SLAs
        self.slow_start = 0  # number of reads until a group is active
        self.servers = {number: server_view(number) for number in (1, 2, 3)}
        self.join_tokens: list[dict[str, Any]] = []  # bodies as received
        self.join_tokens_max = 10
        self.revoked: set[int] = set()
        self.revocations: dict[str, int] = {}  # credentials, each with its end
        self.takes_revocations = True
        self.resizes: list[dict[str, Any]] = []  # bodies as received
        self.lose_resize_answers = 0  # does the work, then the answer is lost
        self.refuse_resize_once = False  # admissible when quoted, refused when resized
        self.moves_for_growth = 0  # replicas that move before a group has a greater rate
        self.accesses: list[tuple[uuid.UUID, str]] = []  # as asked for
        self.quoted: list[dict[str, Any]] = []  # bodies as received
        self.guarantees: dict[uuid.UUID, dict[str, Any]] = {}  # by project
        self.lose_guarantee_answers = 0  # does the work, then the answer is lost
        self.refuse_guarantee_once = False  # admissible when quoted, refused when set
        self.partitioned: dict[uuid.UUID, dict[str, Any]] = {}  # by group
        self.lose_partitions_answers = 0  # does the work, then the answer is lost
        self.refuse_partitions_once = False  # admissible when quoted, refused when set
        self.seals = True  # growths end at once
        self.commit_p99_us: int | None = None  # as its profile was measured
        self.failure_domains: list[str | None] = [None]  # of replicas, in turn
        self.app = Starlette(
            routes=[
                Route("/v1/health", self._health),
                Route("/v1/ca", self._authority),
                Route("/v1/quotes", self._quote, methods=["POST"]),
                Route("/v1/groups", self._groups),
                Route("/v1/groups/{group_id}", self._group, methods=["PUT", "GET", "DELETE"]),
                Route("/v1/groups/{group_id}/sla", self._resize, methods=["PUT"]),
                Route("/v1/groups/{group_id}/partitions", self._partitions, methods=["GET", "PUT"]),
                Route("/v1/groups/{group_id}/access", self._access, methods=["PUT"]),
                Route("/v1/groups/{group_id}/reset", self._reset, methods=["POST"]),
                Route("/v1/projects/{project_id}/guarantee", self._guarantee, methods=["GET", "PUT"]),
                Route("/v1/projects/{project_id}/guarantee/quote", self._quote_guarantee, methods=["POST"]),
                Route("/v1/servers", self._servers),
                Route("/v1/servers/{server_id:int}", self._one_server, methods=["GET", "DELETE"]),
                Route("/v1/servers/{server_id:int}/drain", self._drain, methods=["POST", "DELETE"]),
                Route("/v1/capacity", self._capacity),
                Route("/v1/sharing", self._sharing),
                Route("/v1/balance", self._balance),
                Route("/v1/guarantees", self._all_guarantees),
                Route("/v1/groups/{group_id}/moves", self._move, methods=["POST"]),
                Route("/v1/join-tokens", self._join_tokens, methods=["GET", "POST"]),
                Route("/v1/join-tokens/{token_id}", self._join_token, methods=["DELETE"]),
                Route("/v1/revocations", self._revocations, methods=["POST"]),
                Route("/v1/events", self._events),
            ]
        )

    def emit(self, kind: str, group_id: uuid.UUID | None, message: str, **more: Any) -> None:
        self.events.append(
            {
                "seq": len(self.events) + 1,
                "at": datetime.now(UTC).isoformat(),
                "kind": kind,
                "group_id": str(group_id) if group_id else None,
                "server_id": None,
                "epoch": None,
                "status": None,
                "message": message,
            }
            | more
        )

    def fail_over(self, group_id: uuid.UUID) -> None:
        """The head dies; the next replica takes over in the next epoch."""
        view = self.groups[group_id]
        view["replicas"] = view["replicas"][1:]
        view["replicas"][0]["role"] = "head"
        view["epoch"] += 1
        view["status"] = "degraded"
        self.emit("group_configured", group_id, "The head failed; s2 is head.", epoch=view["epoch"], status="degraded")

    def lose(self, group_id: uuid.UUID) -> None:
        """Nothing of the group's log is left."""
        view = self.groups[group_id]
        view.update(replicas=[], epoch=view["epoch"] + 1, status="lost")
        self.emit("group_status", group_id, "The group is lost.", epoch=view["epoch"], status="lost")

    async def _reset(self, request: Request) -> Response:
        if (refused := self._forbidden(request)) is not None:
            return refused
        body = await request.json()
        self.resets.append(body)
        view = self.groups[uuid.UUID(request.path_params["group_id"])]
        if view["status"] == "lost":
            if self.capacity_gone:
                return JSONResponse({"status": 409, "refusal": _insufficient(ObservedSla(**view["sla"]), 1)}, 409)
            replica = {"server_id": 4, "name": "s4", "address": "127.0.0.1:7004", "role": "sole", "alive": True}
            view.update(replicas=[replica], epoch=view["epoch"] + 1, status="active", begins_at_offset=1 << 40)
        elif not view.get("begins_at_offset"):
            return JSONResponse({"status": 409, "code": "group_not_lost", "detail": "The group is not lost."}, 409)
        return JSONResponse(view)

    async def _revocations(self, request: Request) -> Response:
        if (refused := self._forbidden(request)) is not None:
            return refused
        if not self.takes_revocations:
            return JSONResponse({"status": 409, "code": "fleet_not_ready", "detail": "Upgrade all servers."}, 409)
        told = (await request.json())["revocations"]
        self.revocations |= {each["credential"]: each["until_s"] for each in told}
        return Response(status_code=204)

    async def _access(self, request: Request) -> Response:
        if (refused := self._forbidden(request)) is not None:
            return refused
        access = (await request.json())["access"]
        group_id = uuid.UUID(request.path_params["group_id"])
        if group_id in self.odd:
            return JSONResponse({"group_id": str(group_id)}, self.odd[group_id])
        view = self.groups.get(group_id)
        if view is None:
            return JSONResponse({"title": "not found", "status": 404}, 404)
        self.accesses.append((group_id, access))
        if view["access"] != access:
            # A group that is lost has it in its next epoch.
            view.update(access=access, epoch=view["epoch"] + (view["status"] != "lost"))
            self.emit("group_access", group_id, f"The access is {access}.", epoch=view["epoch"])
        return JSONResponse(view)

    async def _resize(self, request: Request) -> Response:
        if (refused := self._forbidden(request)) is not None:
            return refused
        body = await request.json()
        self.resizes.append(body)
        view = self.groups.get(uuid.UUID(request.path_params["group_id"]))
        if view is None:
            return JSONResponse({"title": "not found", "status": 404}, 404)
        sla, had = ObservedSla.model_validate(body["sla"]), ObservedSla.model_validate(view["sla"])
        if view["status"] == "lost":
            return JSONResponse({"status": 409, "code": "group_lost", "detail": "The group is lost."}, 409)
        moving = view.get("relocation") or {"next_revision": view["sla_revision"], "next_sla": view["sla"]}
        newest = (moving["next_revision"], ObservedSla.model_validate(moving["next_sla"]))
        if (body["revision"], sla) != newest:
            if body["revision"] != newest[0] + 1:
                return JSONResponse({"status": 409, "code": "sla_revision", "detail": "Another revision."}, 409)
            refusal = self._refusal(sla, uuid.UUID(view["group_id"]))
            if self.refuse_resize_once:
                self.refuse_resize_once, refusal = False, _insufficient(sla, 1)
            if refusal is not None:
                return JSONResponse({"title": "refused", "status": 409, "refusal": refusal}, 409)
            view["relocation"] = {
                "cause": "resize",
                "since": datetime.now(UTC).isoformat(),
                "moves": [{"from": n + 1, "to": n + 4} for n in range(self.moves_for_growth)],
                "next_sla": sla.model_dump(mode="json"),
                "next_revision": body["revision"],
                "scarce_resource": None,
            }
            if sla.rate_per_s <= had.rate_per_s or not self.moves_for_growth:
                self.end_moves(uuid.UUID(view["group_id"]))
        if self.lose_resize_answers:
            self.lose_resize_answers -= 1
            return JSONResponse({"title": "the answer got lost"}, 502)
        return JSONResponse(view)

    def end_moves(self, group_id: uuid.UUID) -> None:
        """The last replica has moved, and the SLA that was asked for begins."""
        view = self.groups[group_id]
        moved = view.pop("relocation")
        view.update(
            sla=moved["next_sla"],
            sla_revision=moved["next_revision"],
            sla_since=datetime.now(UTC).isoformat(),
            epoch=view["epoch"] + 1,
        )
        self.emit("group_resized", group_id, "Resized.", epoch=view["epoch"])

    async def _guarantee(self, request: Request) -> Response:
        if (refused := self._forbidden(request)) is not None:
            return refused
        project_id = uuid.UUID(request.path_params["project_id"])
        had = self.guarantees.get(project_id, {"terms": None, "revision": 0, "since": None})
        if request.method == "PUT":
            body = await request.json()
            if (body["guarantee"], body["revision"]) != (had["terms"], had["revision"]):
                problem = self._guarantee_problem(project_id, body["guarantee"])
                if body["revision"] != had["revision"] + 1:
                    problem = {"status": 409, "code": "guarantee_revision", "detail": "Another revision."}
                if self.refuse_guarantee_once:
                    self.refuse_guarantee_once, problem = False, _too_much(1)
                if problem is not None:
                    return JSONResponse(problem, 409)
                since = datetime.now(UTC).isoformat()
                had = {"terms": body["guarantee"], "revision": body["revision"], "since": since}
                self.guarantees[project_id] = had
                for _, view in self._groups_of(project_id):
                    view["shared_tokens_per_s"] = self._shared(project_id)
            if self.lose_guarantee_answers:
                self.lose_guarantee_answers -= 1
                return JSONResponse({"title": "the answer got lost"}, 502)
        return JSONResponse(self._guarantee_view(project_id))

    def _guarantee_view(self, project_id: uuid.UUID) -> dict[str, Any]:
        had = self.guarantees.get(project_id, {"terms": None, "revision": 0, "since": None})
        groups = [
            {
                "group_id": group_id,
                "request_milli_tokens": TOKENS_PER_APPEND * 1_000,
                "own_tokens_per_s": view["sla"]["rate_per_s"] * TOKENS_PER_APPEND,
                "wanted_per_s": 70,
                "share_per_s": 50,
            }
            for group_id, view in self._groups_of(project_id)
        ]
        own = sum(group["own_tokens_per_s"] for group in groups)
        view = {"project_id": str(project_id), "guarantee": had["terms"], "revision": had["revision"]}
        return {**view, "since": had["since"], "own_tokens_per_s": own, "groups": groups}

    async def _quote_guarantee(self, request: Request) -> Response:
        if (refused := self._forbidden(request)) is not None:
            return refused
        project_id = uuid.UUID(request.path_params["project_id"])
        problem = self._guarantee_problem(project_id, (await request.json())["guarantee"])
        refusal = None if problem is None else problem.get("refusal")
        if problem is not None and refusal is None:
            return JSONResponse(problem, 409)
        return JSONResponse({"admissible": refusal is None, "refusal": refusal})

    def _guarantee_problem(self, project_id: uuid.UUID, terms: dict[str, Any] | None) -> dict[str, Any] | None:
        if terms is None:
            return None
        own = dict(self._groups_of(project_id))
        for group in terms["policy"]["groups"]:
            if group["group_id"] not in own:
                return {"status": 409, "code": "foreign_group", "detail": "It names a group of another project."}
        rates = sum(view["sla"]["rate_per_s"] for view in own.values()) * TOKENS_PER_APPEND
        if terms.get("max_tokens_per_s", 1 << 62) < rates + terms["shared_tokens_per_s"]:
            return {"status": 409, "code": "guarantee_below_groups", "detail": f"Ask for {rates} or more."}
        return _too_much(CAPACITY_PER_S) if terms["shared_tokens_per_s"] > CAPACITY_PER_S else None

    def _shared(self, project_id: uuid.UUID) -> int:
        terms = self.guarantees.get(project_id, {"terms": None})["terms"]
        return 0 if terms is None else int(terms["shared_tokens_per_s"])

    def _groups_of(self, project_id: uuid.UUID) -> list[tuple[str, dict[str, Any]]]:
        return [
            (str(group_id), view) for group_id, view in self.groups.items() if view["project_id"] == str(project_id)
        ]

    async def _health(self, request: Request) -> Response:
        if self.down:
            return JSONResponse({"title": "down"}, 503)
        return JSONResponse({"status": "ok", "epoch_changes": 0, "servers_alive": 5})

    async def _authority(self, request: Request) -> Response:
        return self._forbidden(request) or JSONResponse({"ca_pem": self.CA_PEM, "sha256": "0" * 64})

    async def _quote(self, request: Request) -> Response:
        if (refused := self._forbidden(request)) is not None:
            return refused
        body = await request.json()
        self.quoted.append(body)
        sla = ObservedSla.model_validate(body["sla"])
        share = sla.rate_per_s / 100_000
        roles = ["head"] + ["follower"] * (sla.replication_degree - 2) + ["tail"] * (sla.replication_degree > 1)
        demand = [
            {"role": role, "cpu": share, "network_bytes_per_s": share * 1e6, "storage_io_per_s": share * 10}
            for role in roles
        ]
        total = {name: sum(item[name] for item in demand) for name in demand[0] if name != "role"}
        replaces = body.get("replaces_group_id")
        present = self.partitioned.get(uuid.UUID(replaces)) if replaces else None
        count = body.get("partitions") or (len(present["members"]) if present else 1)
        parts = [
            {"sla": part, "demand": _scaled(total, part["rate_per_s"] / sla.rate_per_s)} for part in _parts(sla, count)
        ]
        refusal = self._refusal(sla, uuid.UUID(replaces) if replaces else None)
        return JSONResponse(
            {
                "admissible": refusal is None,
                "demand": demand,
                "total_demand": total,
                "parts": parts if count > 1 or present else [],
                "dominant_resource": "cpu",
                "refusal": refusal,
                "profile_version": "test",
                "commit_p99_us": self.commit_p99_us,
                "failure_domains": len(set(self._domains(sla.replication_degree)) - {None}),
                "moves": self.moves_for_growth if replaces else 0,
            }
        )

    async def _partitions(self, request: Request) -> Response:
        if (refused := self._forbidden(request)) is not None:
            return refused
        group_id = uuid.UUID(request.path_params["group_id"])
        if request.method == "PUT" and (problem := await self._set_partitions(group_id, await request.json())):
            return JSONResponse(problem, problem["status"])
        known = self.partitioned.get(group_id)
        if known is None:
            return JSONResponse({"title": "not found", "status": 404}, 404)
        views = [self.groups[member] for member in known["members"]]
        wanted = [None if number == 2 else number * 1_000 for number in range(len(views))]
        shown = {"members": None, "group_id": str(group_id), "partitions": views, "wanted_per_s": wanted}
        return JSONResponse({**known, **shown})

    async def _set_partitions(self, group_id: uuid.UUID, body: dict[str, Any]) -> dict[str, Any] | None:
        known = self.partitioned.get(group_id, {"revision": 0, "members": [], "layout": 0, "in_use": 1, "changes": []})
        members = [uuid.UUID(text) for text in body["partitions"]]
        if body["revision"] != known["revision"]:
            if body["revision"] != known["revision"] + 1:
                return {"status": 409, "code": "partitions_revision", "detail": "Another revision."}
            present = known["members"] or [group_id] * (group_id in self.groups)
            sla = ObservedSla.model_validate(body["sla"])
            refusal = self._refusal(sla, group_id)
            if self.refuse_partitions_once:
                self.refuse_partitions_once, refusal = False, _insufficient(sla, 1)
            if refusal is not None:
                return {"title": "refused", "status": 409, "refusal": refusal}
            if known["in_use"] < len(present):
                return {"status": 409, "code": "partitions_growing", "detail": "Partitions are being added."}
            for member, part in zip(members, _parts(sla, len(members)), strict=True):
                if member in self.groups:
                    view = self.groups[member]
                    view.update(sla=part, sla_revision=view["sla_revision"] + 1, epoch=view["epoch"] + 1)
                else:
                    await self._put(member, {"sla": part, "project_id": body["project_id"]})
            grows = bool(present) and len(members) > len(present)
            layout = known["layout"] + (len(members) > len(known["members"]))
            known = {
                "sla": body["sla"],
                "revision": body["revision"],
                "since": datetime.now(UTC).isoformat(),
                "members": members,
                "layout": layout,
                "in_use": len(members),
                "changes": known["changes"],
            }
            change = {"layout": layout, "from": len(present), "to": len(members), "ends": [7] * len(present)}
            if grows and self.seals:
                known["changes"] = [*known["changes"], change]
            elif grows:
                known |= {"layout": layout - 1, "in_use": len(present)}
            self.partitioned[group_id] = known
        if self.lose_partitions_answers:
            self.lose_partitions_answers -= 1
            return {"title": "the answer got lost", "status": 502}
        return None

    def _domains(self, replicas: int) -> list[str | None]:
        return [self.failure_domains[number % len(self.failure_domains)] for number in range(replicas)]

    async def _group(self, request: Request) -> Response:
        if (refused := self._forbidden(request)) is not None:
            return refused
        group_id = uuid.UUID(request.path_params["group_id"])
        if group_id in self.odd:
            return JSONResponse({"group_id": str(group_id)}, self.odd[group_id])
        if request.method == "PUT":
            return await self._put(group_id, await request.json())
        if request.method == "DELETE":
            for member in self.partitioned.pop(group_id, {"members": []})["members"]:
                self.groups.pop(member, None) if member != group_id else None
            if self.groups.pop(group_id, None) is not None:
                self.emit("group_deleted", group_id, "The group was deleted.")
            return Response(status_code=204)
        view = self.groups.get(group_id)
        if view is None:
            return JSONResponse({"title": "not found", "status": 404}, 404)
        if view["status"] == "provisioning":
            self.slow_start -= 1
            if self.slow_start <= 0:
                view["status"] = "active"
        return JSONResponse(view)

    async def _groups(self, request: Request) -> Response:
        views = [{"group_id": str(key)} if key in self.odd else view for key, view in self.groups.items()]
        return self._forbidden(request) or JSONResponse(views)

    async def _put(self, group_id: uuid.UUID, body: dict[str, Any]) -> Response:
        self.puts += 1
        known = self.groups.get(group_id)
        if known is not None:
            asked = ObservedSla.model_validate(body["sla"])
            assert ObservedSla.model_validate(known["sla"]) == asked, "idempotent by id and body"
            return JSONResponse(known)
        sla = ObservedSla.model_validate(body["sla"])
        refusal = self._refusal(sla)
        if self.refuse_put_once:
            self.refuse_put_once = False
            refusal = _insufficient(sla, 1)
        if refusal is not None:
            return JSONResponse({"title": "refused", "status": 409, "refusal": refusal}, 409)
        roles = (
            ["head", *["follower"] * (sla.replication_degree - 2), "tail"] if sla.replication_degree > 1 else ["sole"]
        )
        view = {
            "group_id": str(group_id),
            "project_id": body["project_id"],
            "sla": sla.model_dump(mode="json"),
            "status": "provisioning" if self.slow_start else "active",
            "epoch": 1,
            "replicas": [
                {
                    "server_id": number,
                    "name": f"s{number}",
                    "address": f"127.0.0.1:{7000 + number}",
                    "role": role,
                    "alive": True,
                    "failure_domain": domain,
                }
                for number, (role, domain) in enumerate(zip(roles, self._domains(len(roles)), strict=True), 1)
            ],
            "learners": [],
            "access": "full",
            "charges": CHARGES,
            "reads": READS,
            "shared_tokens_per_s": self._shared(uuid.UUID(body["project_id"])),
            "request_milli_tokens": TOKENS_PER_APPEND * 1_000,
            "sla_revision": 1,
            "sla_since": datetime.now(UTC).isoformat(),
            "created_at": datetime.now(UTC).isoformat(),
        }
        GroupView.model_validate(view)
        self.groups[group_id] = view
        self.emit("group_admitted", group_id, "The group was admitted.", epoch=1, status="active")
        if self.lose_put_answers:
            self.lose_put_answers -= 1
            return JSONResponse({"title": "the answer got lost"}, 502)
        return JSONResponse(view, 201)

    async def _servers(self, request: Request) -> Response:
        return self._forbidden(request) or JSONResponse(list(self.servers.values()))

    async def _one_server(self, request: Request) -> Response:
        if (refused := self._forbidden(request)) is not None:
            return refused
        view = self.servers.get(request.path_params["server_id"])
        if view is None:
            return JSONResponse({"code": "not_found", "title": "Not found"}, 404)
        if request.method == "GET":
            return JSONResponse(view)
        if view["alive"]:
            return JSONResponse({"code": "server_alive", "detail": "The server s1 is alive."}, 409)
        del self.servers[view["server_id"]]
        return Response(status_code=204)

    async def _drain(self, request: Request) -> Response:
        if (refused := self._forbidden(request)) is not None:
            return refused
        view = self.servers.get(request.path_params["server_id"])
        if view is None:
            return JSONResponse({"code": "not_found", "title": "Not found"}, 404)
        view["draining"] = request.method == "POST"
        view["drain"] = None
        if view["draining"]:
            view["drain"] = {
                "state": "draining",
                "since": datetime.now(UTC).isoformat(),
                "drained_at": None,
                "moving": 1,
                "waiting": 1,
                "scarce_resource": None,
                "message": "2 replicas are left.",
            }
        return JSONResponse(view)

    async def _capacity(self, request: Request) -> Response:
        extra = {"servers_alive": 3, "safety_factor": 0.7, "profile_version": "test", "profile_provisional": True}
        return self._forbidden(request) or JSONResponse({**RESOURCES, **extra})

    async def _sharing(self, request: Request) -> Response:
        if not self.shares:
            return JSONResponse({"status": 404, "code": "not_found", "detail": "There is no such call."}, 404)
        counts = {"rounds": 7, "servers": 3, "groups_wanting": 4, "groups_satisfied": 1, "took_us": 250}
        view = {"policy": "drf", **counts, "ended_unix_ms": 1_790_000_000_500}
        return self._forbidden(request) or JSONResponse(view)

    async def _balance(self, request: Request) -> Response:
        if not self.shares:
            return JSONResponse({"status": 404, "code": "not_found", "detail": "There is no such call."}, 404)
        moves = [
            {"group_id": str(group_id), "project_id": view["project_id"], "relocation": view["relocation"]}
            for group_id, view in self.groups.items()
            if view.get("relocation") is not None
        ]
        return self._forbidden(request) or JSONResponse(self.balanced | {"moves": moves})

    async def _move(self, request: Request) -> Response:
        if (refused := self._forbidden(request)) is not None:
            return refused
        view = self.groups.get(uuid.UUID(request.path_params["group_id"]))
        if view is None:
            return JSONResponse({"status": 404, "code": "not_found", "detail": "There is no such group."}, 404)
        asked = await request.json()
        if asked.get("to_server_id", 0) not in {0, *self.servers}:
            return JSONResponse({"status": 409, "code": "no_server", "detail": "There is no such server."}, 409)
        view["relocation"] = {
            "cause": "operator",
            "since": datetime.now(UTC).isoformat(),
            "moves": [{"from": asked["from_server_id"], "to": asked.get("to_server_id", 4)}],
            "next_sla": None,
            "next_revision": None,
            "scarce_resource": None,
        }
        return JSONResponse(view)

    async def _all_guarantees(self, request: Request) -> Response:
        if (refused := self._forbidden(request)) is not None:
            return refused
        given = [project_id for project_id, had in self.guarantees.items() if had["terms"] is not None]
        return JSONResponse([self._guarantee_view(project_id) for project_id in given])

    async def _join_tokens(self, request: Request) -> Response:
        if (refused := self._forbidden(request)) is not None:
            return refused
        if request.method == "GET":
            views = [
                {
                    "id": f"{number:016x}",
                    "name": body["name"],
                    "auxiliary": body["auxiliary"],
                    "state": "revoked" if number in self.revoked else "outstanding",
                    "expires_at": datetime.now(UTC).isoformat(),
                    "server_id": None,
                }
                for number, body in enumerate(self.join_tokens, 1)
            ]
            return JSONResponse(views)
        if len(self.join_tokens) >= self.join_tokens_max:
            return JSONResponse({"code": "too_many_join_tokens", "detail": "10 tokens wait."}, 409)
        self.join_tokens.append(await request.json())
        number = len(self.join_tokens)
        return JSONResponse({"id": f"{number:016x}", "token": f"qjt_{number}.fingerprint"}, 201)

    async def _join_token(self, request: Request) -> Response:
        if (refused := self._forbidden(request)) is not None:
            return refused
        number = int(request.path_params["token_id"], 16)
        if not 1 <= number <= len(self.join_tokens):
            return JSONResponse({"code": "not_found", "title": "Not found"}, 404)
        self.revoked.add(number)
        return Response(status_code=204)

    async def _events(self, request: Request) -> Response:
        if (refused := self._forbidden(request)) is not None:
            return refused
        after = int(request.query_params["after"])
        deadline = asyncio.get_running_loop().time() + int(request.query_params["wait_ms"]) / 1000
        while len(self.events) <= after and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        self.down = self.down or self.down_after_events
        return JSONResponse(
            {
                "events": [event for event in self.events[after:] if event["seq"] >= self.first_event],
                "next": max(after, len(self.events)),
                "first": self.first_event,
                "last": len(self.events),
            }
        )

    def _forbidden(self, request: Request) -> Response | None:
        if self.down:
            return JSONResponse({"title": "down"}, 503)
        if self.leaderless:
            return JSONResponse({"code": "not_leader", "detail": "Nobody leads.", "leader": None}, 503)
        if request.headers.get("authorization") != f"Bearer {self.TOKEN}":
            return JSONResponse({"title": "no token"}, 401)
        return None

    def _refusal(self, sla: ObservedSla, but: uuid.UUID | None = None) -> dict[str, Any] | None:
        if sla.region != "local":
            return {
                "reason": "unknown_region",
                "scarce_resource": "servers",
                "message": f"There is no region {sla.region}.",
                "largest_sla_that_fits": None,
            }
        used = sum(view["sla"]["rate_per_s"] for id_, view in self.groups.items() if id_ != but)
        free = CAPACITY_PER_S - used
        return _insufficient(sla, free) if sla.rate_per_s > free else None


def _parts(sla: ObservedSla, count: int) -> list[dict[str, Any]]:
    each, rest = divmod(sla.rate_per_s, count)
    read_each, read_rest = divmod(sla.read_rate_per_s, count)
    return [
        sla.model_dump(mode="json")
        | {
            "rate_per_s": each + (number < rest),
            "read_rate_per_s": read_each + (number < read_rest),
            "retention_bytes": sla.retention_bytes // count,
        }
        for number in range(count)
    ]


def _scaled(total: dict[str, float], share: float) -> dict[str, float]:
    return {name: amount * share for name, amount in total.items()}


def _insufficient(sla: ObservedSla, free: int) -> dict[str, Any]:
    return {
        "reason": "insufficient_capacity",
        "scarce_resource": "cpu",
        "message": f"Not enough CPU: {free} appends/s would fit.",
        "largest_sla_that_fits": sla.model_dump(mode="json") | {"rate_per_s": max(1, free)},
    }
