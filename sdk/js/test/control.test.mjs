// The control client against a fetch that answers as the API does.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as control from "../dist/control.js";

/** A control client whose API answers from a list. `requests` records its requests. */
function api(answers, options = {}) {
  const requests = [];
  const fetch = async (url, init) => {
    requests.push({ url, ...init });
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { requests, client: new control.Control("https://api.example/", "qk_test", { fetch, ...options }) };
}

const json = (status, body, headers) => new Response(JSON.stringify(body), { status, headers });
const problem = (status, code, fields = {}) =>
  json(status, { code, title: "t", detail: "d", request_id: "r1", ...fields });
const SLA = { durability: "persistent", replication_degree: 3, request_size_bytes: 64, rate_per_s: 10 };

test("asks for a handle", async () => {
  const group_id = "01930f3c-5f4e-7cc3-98c4-dc0c0c07398f";
  const handle = { group_id, endpoints: [{ server_id: 1, address: "h:1", role: "head" }], token: "t" };
  const { client, requests } = api([json(200, handle)]);
  assert.deepEqual((await client.handle(group_id)).addresses(), ["h:1"]);
  assert.equal(String(requests[0].url), `https://api.example/v1/groups/${group_id}/handle`);
  assert.equal(requests[0].headers.Authorization, "Bearer qk_test");
  assert.equal(requests[0].headers["Idempotency-Key"], undefined);
});

test("retries a POST under one idempotency key; another call has another", async () => {
  const answers = [new TypeError("fetch failed"), json(503, {}), problem(409, "idempotency_in_progress")];
  const { client, requests } = api([...answers, json(201, { id: "g" }), json(201, {})]);
  assert.deepEqual(await client.createGroup("p/1", "orders", SLA), { id: "g" });
  assert.equal(new Set(requests.map(({ headers }) => headers["Idempotency-Key"])).size, 1);
  assert.equal(requests[0].url.pathname, "/v1/projects/p%2F1/groups");
  assert.deepEqual(JSON.parse(requests[3].body), { name: "orders", ...SLA });
  await client.createProject("a");
  assert.notEqual(requests[4].headers["Idempotency-Key"], requests[3].headers["Idempotency-Key"]);
});

test("problems become typed errors", async () => {
  const cases = [
    [401, "unauthorized", control.AuthenticationFailed],
    [403, "forbidden", control.NotAllowed],
    [404, "not_found", control.NotFound],
    [409, "admission_refused", control.AdmissionRefused],
    [422, "validation_failed", control.ApiError],
    [500, "internal", control.ApiError],
  ];
  for (const [status, code, type] of cases) {
    const fields = { refusal: { scarce_resource: "cpu" }, errors: [{ field: "rate_per_s", message: "too small" }] };
    const { client } = api([problem(status, code, fields)]);
    await assert.rejects(client.group("g"), (error) => {
      assert.equal(error.constructor, type);
      assert.deepEqual([error.code, error.requestId], [code, "r1"]);
      assert.match(error.message, /rate_per_s: too small/);
      if (type === control.AdmissionRefused) assert.equal(error.refusal.scarce_resource, "cpu");
      return true;
    });
  }
});

test("an answer that is not the API's is an error, not a crash", async () => {
  for (const body of ["<html>", "[1]"]) {
    const { client } = api(
      Array.from({ length: 9 }, () => new Response(body)),
      { timeoutMs: 300 },
    );
    await assert.rejects(client.group("g"), control.ApiUnreachable);
  }
  const { client } = api([new Response("<html>", { status: 404 })]);
  await assert.rejects(client.group("g"), control.NotFound);
});

test("gives up after a bounded number of tries, and by its deadline", async () => {
  const cause = new Error("connect ECONNREFUSED");
  const failing = api(Array.from({ length: 20 }, () => new TypeError("fetch failed", { cause })));
  await assert.rejects(failing.client.group("g"), /ECONNREFUSED/);
  assert.equal(failing.requests.length, control.ATTEMPTS_MAX);
  const limited = api([json(429, { code: "rate_limited" }, { "Retry-After": "3600" })], { timeoutMs: 1_000 });
  await assert.rejects(limited.client.group("g"), /rate_limited/);
});

test("resizes", async () => {
  const refused = json(409, { code: "admission_refused", refusal: { scarce_resource: "cpu" } });
  const { client, requests } = api([new TypeError("fetch failed"), refused]);
  await assert.rejects(client.resizeGroup("g/1", { rate_per_s: 10, retention_age_s: null }), control.AdmissionRefused);
  assert.deepEqual(
    requests.map(({ method, url }) => `${method} ${url.pathname}`),
    ["PATCH /v1/groups/g%2F1", "PATCH /v1/groups/g%2F1"],
  );
});

test("gives a project a guarantee, and takes it back", async () => {
  const terms = { shared_tokens_per_s: 5, policy: { name: "first_fit", groups: [{ group_id: "g" }] } };
  const { client, requests } = api([json(200, {}), json(200, {}), json(200, {}), new Response(null, { status: 204 })]);
  await client.quoteGuarantee("p/1", terms);
  await client.setGuarantee("p/1", terms);
  await client.guarantee("p/1");
  await client.takeBackGuarantee("p/1");
  assert.deepEqual(
    requests.map(({ method, url }) => `${method} ${url.pathname}`),
    [
      "POST /v1/projects/p%2F1/guarantee/quote",
      "PUT /v1/projects/p%2F1/guarantee",
      "GET /v1/projects/p%2F1/guarantee",
      "DELETE /v1/projects/p%2F1/guarantee",
    ],
  );
});

test("follows cursors, deletes and reports", async () => {
  const pages = [
    { items: [{ id: 1 }], next_cursor: "c" },
    { items: [{ id: 2 }], next_cursor: null },
  ];
  const rest = [new Response(null, { status: 204 }), json(200, {}), json(200, {}), json(200, {})];
  const { client, requests } = api([...pages.map((page) => json(200, page)), ...rest]);
  const ids = [];
  for await (const { id } of client.groups("p")) ids.push(id);
  assert.deepEqual(ids, [1, 2]);
  assert.equal(requests[1].url.search, "?cursor=c");
  await client.deleteGroup("g");
  await client.usage("g", { from: new Date(0) });
  await client.sla("g", "2026-11");
  await client.invoice();
  assert.deepEqual(
    requests.slice(2).map(({ method, url }) => `${method} ${url.pathname}${url.search}`),
    [
      "DELETE /v1/groups/g",
      "GET /v1/groups/g/usage?from=1970-01-01T00%3A00%3A00.000Z",
      "GET /v1/groups/g/sla?month=2026-11",
      "GET /v1/invoices/current",
    ],
  );
});

test("rejects what cannot work", () => {
  assert.throws(() => new control.Control("api.example", "qk_x"), /https:/);
  assert.throws(() => new control.Control("https://api.example", "secret"), /qk_/);
});
