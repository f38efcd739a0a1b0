// Package fakeapi is a strict stand-in for the API. It accepts and answers as the contract says, checks credentials as the
// API does, and has faults on demand. Anything else fails the test.
package fakeapi

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// Credentials known to the API.
const (
	APIKey        = "qk_organization"
	OperatorToken = "qo_operator"
	RateMax       = 10_000  // rate that the fleet can promise in all
	TokensMax     = 500_000 // shared tokens that it can
)

type object = map[string]any

// API is a server of its own for each test.
type API struct {
	URL string

	mu         sync.Mutex
	t          *testing.T
	server     *httptest.Server
	projects   map[string]object
	groups     map[string]object
	keys       map[string]object
	webhooks   map[string]object
	guarantees map[string]object
	servers    map[string]object
	registered int
	tokens     map[string]object
	quotas     object // limits in place of defaults, of the only organization
	answers    map[string]stored
	calls      []string

	loseAnswers   int // number of POSTs whose work is done before the connection breaks
	refuseResizes bool
	gateway       int            // number of requests that a gateway answers in its place
	gatewayAt     map[string]int // the same for this path only
	deletesSlowly int            // number of reads until a group's deletion ends
	garbage       string         // HTML page answered instead
	movesSlowly   int            // number of reads until a resize begins
	customersOnly bool           // operators have another address

	requestedQuotas object
}

type stored struct {
	body   string
	status int
	answer []byte
}

// Start serves until the test ends.
func Start(t *testing.T) *API {
	fake := &API{
		t: t, projects: map[string]object{}, groups: map[string]object{}, keys: map[string]object{}, guarantees: map[string]object{},
		webhooks: map[string]object{}, quotas: object{}, requestedQuotas: object{},
		servers: map[string]object{}, tokens: map[string]object{}, answers: map[string]stored{},
	}
	fake.server = httptest.NewServer(http.HandlerFunc(fake.serve))
	fake.URL = fake.server.URL
	t.Cleanup(fake.server.Close)
	return fake
}

// Stop ends the server, so that requests get no answer.
func (f *API) Stop() { f.server.Close() }

// LoseAnswers of the next creating POSTs, after their work was done.
func (f *API) LoseAnswers(n int) { f.with(func() { f.loseAnswers = n }) }

// Garble answers every request with this page; "" ends it.
func (f *API) Garble(page string) { f.with(func() { f.garbage = page }) }

// Register adds a server to the fleet.
func (f *API) Register(name string) {
	f.with(func() {
		f.registered++
		for _, token := range f.tokens {
			if token["name"] == name && token["state"] == "outstanding" {
				token["state"] = "used"
			}
		}
		id := f.registered
		zero := object{"cpu": 1, "network_bytes_per_s": 1e9, "storage_io_per_s": 1e4, "memory_bytes": 1 << 34, "disk_bytes": nil}
		resources := object{"nominal": zero, "promisable": zero, "allocated": zero, "free": zero}
		f.servers[name] = object{
			"server_id": id, "name": name, "address": fmt.Sprintf("127.0.0.1:%d", 7000+id), "region": "local",
			"failure_domain": nil, "auxiliary": false, "alive": true, "storage_fault": nil, "version": "0.1.0",
			"resources": resources, "replicas": 2, "slow": nil, "machine": "2 × A processor",
			"foreign": nil, "takes_replicas": true, "draining": false, "drain": nil,
			"registered_at": now(), "failed_at": nil,
		}
	})
}

// CustomersOnly: operators' calls have another address, or have it no longer.
func (f *API) CustomersOnly(only bool) { f.with(func() { f.customersOnly = only }) }

// StopServer ends a server's process.
func (f *API) StopServer(name string) { f.with(func() { f.servers[name]["alive"] = false }) }

// LoseGateway: a gateway answers the next requests, because the API behind it is away.
func (f *API) LoseGateway(requests int) { f.with(func() { f.gateway = requests }) }

// DeleteSlowly begins to delete all groups without Terraform. They are gone after so many reads.
func (f *API) DeleteSlowly(looks int) {
	f.with(func() {
		f.deletesSlowly = looks
		for _, group := range f.groups {
			group["status"] = "deleting"
		}
	})
}

// LoseGatewayAt is LoseGateway for one path only.
func (f *API) LoseGatewayAt(path string, requests int) {
	f.with(func() { f.gatewayAt = map[string]int{path: requests} })
}

// ExpireJoinTokens ends every usable join token.
func (f *API) ExpireJoinTokens() {
	f.with(func() {
		for _, token := range f.tokens {
			if token["state"] == "outstanding" {
				token["state"] = "expired"
			}
		}
	})
}

// KillServer ends it. `waiting` groups have no other replica.
func (f *API) KillServer(name string, waiting int) {
	f.with(func() { f.servers[name]["alive"], f.servers[name]["replicas"] = false, waiting })
}

// ReviveServer starts it again.
func (f *API) ReviveServer(name string) { f.with(func() { f.servers[name]["alive"] = true }) }

// GiveUp removes a server from the fleet without Terraform.
func (f *API) GiveUp(name string) { f.with(func() { delete(f.servers, name) }) }

// DeleteGroups without Terraform.
func (f *API) DeleteGroups() { f.with(func() { clear(f.groups) }) }

// Count of resources, by kind.
func (f *API) Count() (projects, groups, keys, servers int) {
	f.with(func() { projects, groups, keys, servers = len(f.projects), len(f.groups), len(f.keys), len(f.servers) })
	return projects, groups, keys, servers
}

// Calls so far, as `METHOD path`, with this end of the path.
func (f *API) Calls(method, suffix string) (count int) {
	f.with(func() {
		for _, call := range f.calls {
			if strings.HasPrefix(call, method+" ") && strings.HasSuffix(call, suffix) {
				count++
			}
		}
	})
	return count
}

func (f *API) with(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *API) serve(writer http.ResponseWriter, request *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, request.Method+" "+request.URL.Path)
	if f.gatewayAt[request.URL.Path] > 0 {
		f.gateway++
		f.gatewayAt[request.URL.Path]--
	}
	if f.gateway > 0 {
		f.gateway--
		writer.Header().Set("Content-Type", "text/html")
		writer.WriteHeader([]int{502, 503, 504}[f.gateway%3])
		_, _ = io.WriteString(writer, "<html><title>Bad gateway</title></html>")
		return
	}
	if f.garbage != "" {
		writer.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(writer, f.garbage)
		return
	}
	body, _ := io.ReadAll(request.Body)
	status, answer, replayed := f.authorized(request, string(body))
	makes := request.Method == http.MethodPost && !strings.HasSuffix(request.URL.Path, "/quotes")
	if makes && status < 300 && f.loseAnswers > 0 {
		f.loseAnswers--
		panic(http.ErrAbortHandler)
	}
	if replayed {
		writer.Header().Set("Idempotency-Replayed", "true")
	}
	kind := "application/json"
	if status >= 400 {
		kind = "application/problem+json"
	}
	writer.Header().Set("Content-Type", kind)
	writer.WriteHeader(status)
	_, _ = writer.Write(answer)
}

func (f *API) authorized(request *http.Request, body string) (int, []byte, bool) {
	wanted := APIKey
	if strings.HasPrefix(request.URL.Path, "/v1/operator/") {
		if f.customersOnly {
			status, answer := problem(404, "operator_elsewhere", "Call the operators' address.", nil)
			return status, encode(answer), false
		}
		wanted = OperatorToken
	}
	if request.Header.Get("Authorization") != "Bearer "+wanted {
		status, answer := problem(401, "credentials_invalid", "No such credential.", nil)
		return status, encode(answer), false
	}
	key := request.Header.Get("Idempotency-Key")
	if request.Method != http.MethodPost || key == "" {
		status, answer := f.route(request, body)
		return status, encode(answer), false
	}
	if known, ok := f.answers[key]; ok {
		if known.body != request.URL.Path+body {
			status, answer := problem(422, "idempotency_key_reused", "Another request.", nil)
			return status, encode(answer), false
		}
		return known.status, known.answer, true
	}
	status, answer := f.route(request, body)
	if status < 300 {
		f.answers[key] = stored{request.URL.Path + body, status, encode(answer)}
	}
	return status, encode(answer), false
}

func encode(answer any) []byte {
	if answer == nil {
		return nil
	}
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return text
}

func (f *API) route(request *http.Request, body string) (int, any) {
	parts := strings.Split(strings.TrimPrefix(request.URL.Path, "/v1/"), "/")
	switch pattern := request.Method + " " + shape(parts); pattern {
	case "POST projects":
		return f.makeProject(f.fields(body, "name"))
	case "GET projects":
		return page(f.projects, "", "")
	case "GET projects/*/groups":
		return page(f.groups, "project_id", parts[1])
	case "GET projects/*":
		return found(f.projects[parts[1]])
	case "GET projects/*/guarantee":
		return f.guarantee(parts[1])
	case "PUT projects/*/guarantee":
		return f.putGuarantee(parts[1], f.fields(body, "shared_tokens_per_s", "max_tokens_per_s", "policy"))
	case "DELETE projects/*/guarantee":
		delete(f.guarantees, parts[1])
		return 204, nil
	case "PUT projects/*/settings":
		return f.renameProject(parts[1], f.fields(body, "name"))
	case "DELETE projects/*":
		return f.deleteProject(parts[1])
	case "POST projects/*/groups":
		return f.makeGroup(parts[1], f.slaFields(body, "name", "deletion_protection"))
	case "GET groups/*":
		if group := f.groups[parts[1]]; group != nil && group["status"] == "deleting" {
			if f.deletesSlowly--; f.deletesSlowly < 0 {
				delete(f.groups, parts[1])
			}
		}
		f.look(f.groups[parts[1]])
		return found(f.groups[parts[1]])
	case "PATCH groups/*":
		return f.resizeGroup(parts[1], f.fields(body, "rate_per_s", "read_rate_per_s", "request_size_bytes", "min_replicas", "retention_bytes", "retention_age_s", "latency", "partitions"))
	case "PUT groups/*/settings":
		return f.settleGroup(parts[1], f.fields(body, "name", "deletion_protection"))
	case "DELETE groups/*":
		return f.deleteGroup(parts[1])
	case "POST quotes":
		return f.quote(f.slaFields(body, "replaces_group_id"))
	case "POST projects/*/keys":
		return f.makeKey(parts[1], f.fields(body, "name", "scopes", "expires_at"))
	case "GET projects/*/keys":
		return f.listKeys(parts[1], request)
	case "DELETE keys/*":
		return remove(f.keys, parts[1])
	case "POST webhooks":
		return f.makeWebhook(f.fields(body, "url", "description", "event_types"))
	case "GET webhooks/*":
		return found(f.webhooks[parts[1]])
	case "PUT webhooks/*":
		return f.changeWebhook(parts[1], f.fields(body, "url", "description", "event_types", "status"))
	case "DELETE webhooks/*":
		return remove(f.webhooks, parts[1])
	case "GET operator/servers":
		return f.listServers(request.URL.Query().Get("name"))
	case "POST operator/servers/*/drain", "DELETE operator/servers/*/drain":
		return f.drain(parts[2], request.Method == http.MethodPost)
	case "DELETE operator/servers/*":
		return f.giveUp(parts[2])
	case "POST operator/join-tokens":
		asked := f.fields(body, "name", "ttl_s", "auxiliary")
		id := fmt.Sprintf("%016x", len(f.tokens)+1)
		f.tokens[id] = object{
			"id": id, "name": asked["name"], "auxiliary": asked["auxiliary"], "state": "outstanding", "expires_at": now(), "server_id": nil,
		}
		return 201, object{"id": id, "token": "qjt_" + rand.Text(), "name": asked["name"], "auxiliary": asked["auxiliary"], "expires_at": now()}
	case "GET operator/join-tokens":
		items := []any{}
		for _, token := range f.tokens {
			items = append(items, token)
		}
		return 200, object{"items": items}
	case "DELETE operator/join-tokens/*":
		if f.tokens[parts[2]] == nil {
			return problem(404, "not_found", "No such token.", nil)
		}
		if f.tokens[parts[2]]["state"] != "used" {
			f.tokens[parts[2]]["state"] = "revoked"
		}
		return 204, nil
	case "GET operator/organizations/*/quotas":
		return f.quotasOf(parts[2])
	case "PUT operator/organizations/*/quotas/" + parts[len(parts)-1]:
		return f.setQuota(parts[2], parts[4], f.fields(body, "limit")["limit"])
	case "DELETE operator/organizations/*/quotas/" + parts[len(parts)-1]:
		return f.resetQuota(parts[2], parts[4])
	case "GET operator/capacity":
		vector := object{"cpu": 4, "network_bytes_per_s": 1e9, "storage_io_per_s": 1e4, "memory_bytes": 1 << 34, "disk_bytes": nil}
		return 200, object{
			"nominal": vector, "promisable": vector, "allocated": vector, "free": vector, "servers_alive": f.alive(),
			"safety_factor": 0.7, "profile_version": "test", "profile_provisional": true,
		}
	default:
		f.t.Errorf("the provider made a call that the API does not have: %s", pattern)
		return problem(404, "not_found", "No such address.", nil)
	}
}

func (f *API) guarantee(projectID string) (int, any) {
	if f.projects[projectID] == nil {
		return problem(404, "not_found", "No such project.", nil)
	}
	shown := object{
		"project_id": projectID, "shared_tokens_per_s": 0, "max_tokens_per_s": nil, "policy": object{"name": "drf", "groups": []any{}},
		"revision": 0, "since": nil, "is_settled": true, "own_tokens_per_s": 0, "groups": []any{},
		"price": object{"hourly_micros": 0, "monthly_micros": 0, "currency": "USD"},
	}
	for name, value := range f.guarantees[projectID] {
		shown[name] = value
	}
	return 200, shown
}

func (f *API) putGuarantee(projectID string, asked object) (int, any) {
	if f.projects[projectID] == nil {
		return problem(404, "not_found", "No such project.", nil)
	}
	tokens, _ := asked["shared_tokens_per_s"].(float64)
	if tokens > TokensMax {
		detail := fmt.Sprintf("s1 has too little CPU free. %d fit now.", TokensMax)
		return problem(409, "guarantee_refused", detail, object{
			"errors": []any{object{"field": "shared_tokens_per_s", "message": detail}},
		})
	}
	asked["revision"], asked["since"] = 1, now()
	asked["price"] = object{"hourly_micros": tokens, "monthly_micros": tokens * 730, "currency": "USD"}
	f.guarantees[projectID] = asked
	return f.guarantee(projectID)
}

func (f *API) alive() (count int) {
	for _, server := range f.servers {
		if server["alive"] == true {
			count++
		}
	}
	return count
}

// shape of a path, with a star in place of each id.
func shape(parts []string) string {
	shown := append([]string(nil), parts...)
	for i, part := range parts {
		if _, err := uuid.Parse(part); err == nil {
			shown[i] = "*"
		} else if _, err := strconv.Atoi(part); err == nil {
			shown[i] = "*"
		}
	}
	return strings.Join(shown, "/")
}

// fields of a body. An unknown one fails the test, as the API refuses it.
func (f *API) fields(body string, known ...string) object {
	var given object
	if err := json.Unmarshal([]byte(body), &given); err != nil {
		f.t.Errorf("the body is no JSON object: %q", body)
	}
	allowed := " " + strings.Join(known, " ") + " "
	for name := range given {
		if !strings.Contains(allowed, " "+name+" ") {
			f.t.Errorf("the API has no field %q: %s", name, body)
		}
	}
	return given
}

func (f *API) slaFields(body string, more ...string) object {
	given := f.fields(body, append(more, "durability", "replication_degree", "min_replicas", "request_size_bytes", "rate_per_s", "read_rate_per_s",
		"region", "retention_bytes", "retention_age_s", "latency", "partitions")...)
	defaults := object{"region": "local", "retention_bytes": 256 << 20, "min_replicas": nil, "retention_age_s": nil, "latency": "standard", "read_rate_per_s": 0, "partitions": 1}
	for name, value := range defaults {
		if _, ok := given[name]; !ok {
			given[name] = value
		}
	}
	return given
}

func (f *API) makeProject(asked object) (int, any) {
	for _, known := range f.projects {
		if known["name"] == asked["name"] {
			return problem(409, "name_taken", "Another project has this name.", nil)
		}
	}
	made := object{"id": uuid.NewString(), "name": asked["name"], "created_at": now()}
	f.projects[made["id"].(string)] = made
	return 201, made
}

func (f *API) deleteProject(id string) (int, any) {
	for _, group := range f.groups {
		if group["project_id"] == id {
			return problem(409, "project_not_empty", "The project has groups.", nil)
		}
	}
	if f.guarantees[id] != nil {
		return problem(409, "project_not_empty", "The project has a guarantee.", nil)
	}
	for name, key := range f.keys {
		if key["project_id"] == id {
			delete(f.keys, name)
		}
	}
	return remove(f.projects, id)
}

func (f *API) makeGroup(projectID string, asked object) (int, any) {
	if f.projects[projectID] == nil {
		return problem(404, "not_found", "No such project.", nil)
	}
	for _, known := range f.groups {
		if known["project_id"] == projectID && known["name"] == asked["name"] {
			return problem(409, "name_taken", "Another group has this name.", nil)
		}
	}
	if refusal := f.refusal(asked, ""); refusal != nil {
		return problem(409, "admission_refused", "The fleet cannot promise it.", object{"refusal": refusal})
	}
	name, partitions, protected := asked["name"], asked["partitions"], asked["deletion_protection"] == true
	delete(asked, "name")
	delete(asked, "deletion_protection")
	delete(asked, "partitions")
	made := object{
		"id": uuid.NewString(), "project_id": projectID, "name": name, "partitions": partitions, "deletion_protection": protected, "sla": asked, "status": "active", "epoch": 1,
		"price": price(), "created_at": now(), "observed_at": now(),
	}
	f.groups[made["id"].(string)] = made
	return 201, made
}

func (f *API) resizeGroup(id string, asked object) (int, any) {
	known := f.groups[id]
	if known == nil {
		return problem(404, "not_found", "No such group.", nil)
	}
	sla := object{}
	for name, value := range known["sla"].(object) {
		sla[name] = value
	}
	for name, value := range asked {
		sla[name] = value
	}
	partitions, grows := asked["partitions"]
	delete(sla, "partitions")
	refusal := f.refusal(sla, id)
	if f.refuseResizes {
		f.refuseResizes = false
		sla["rate_per_s"] = float64(RateMax + 1)
		refusal = f.refusal(sla, id)
	}
	if refusal != nil {
		return problem(409, "admission_refused", "The group's servers have no room.", object{"refusal": refusal})
	}
	if grows {
		known["partitions"] = partitions
	}
	known["resizing"] = object{"sla": sla, "price": known["price"]}
	f.look(known)
	return 200, known
}

// look has the SLA that was asked for begin, once its replicas have moved.
func (f *API) look(known object) {
	if known == nil || known["resizing"] == nil {
		return
	}
	if f.movesSlowly--; f.movesSlowly < 0 {
		known["sla"], known["epoch"] = known["resizing"].(object)["sla"], known["epoch"].(int)+1
		known["resizing"] = nil
	}
}

// MoveSlowly has the next resize begin after so many reads.
func (f *API) MoveSlowly(looks int) { f.with(func() { f.movesSlowly = looks }) }

// RefuseResizes refuses the next resize, although its quote was admissible.
func (f *API) RefuseResizes() { f.with(func() { f.refuseResizes = true }) }

// RevokeJoinTokens without Terraform.
func (f *API) RevokeJoinTokens() {
	f.with(func() {
		for _, token := range f.tokens {
			if token["state"] != "used" {
				token["state"] = "revoked"
			}
		}
	})
}

// Outstanding join tokens.
func (f *API) Outstanding() (count int) {
	f.with(func() {
		for _, token := range f.tokens {
			if token["state"] == "outstanding" {
				count++
			}
		}
	})
	return count
}

func (f *API) refusal(asked object, without string) any {
	reserved := asked["rate_per_s"].(float64)
	for id, known := range f.groups {
		if id != without {
			reserved += known["sla"].(object)["rate_per_s"].(float64)
		}
	}
	if reserved <= RateMax {
		return nil
	}
	fits := object{}
	for name, value := range asked {
		if name != "name" && name != "replaces_group_id" {
			fits[name] = value
		}
	}
	fits["rate_per_s"] = RateMax - (reserved - asked["rate_per_s"].(float64))
	return object{
		"reason": "insufficient_capacity", "scarce_resource": "cpu", "message": "The head needs more cores than are free.",
		"largest_sla_that_fits": fits,
	}
}

func (f *API) quote(asked object) (int, any) {
	without, _ := asked["replaces_group_id"].(string)
	refusal := f.refusal(asked, without)
	demand := object{"replicas": []any{}, "total": object{"cpu": 1, "network_bytes_per_s": 1, "storage_io_per_s": 1}, "dominant_resource": "cpu"}
	return 200, object{"admissible": refusal == nil, "price": price(), "demand": demand, "refusal": refusal}
}

func (f *API) makeKey(projectID string, asked object) (int, any) {
	if f.projects[projectID] == nil {
		return problem(404, "not_found", "No such project.", nil)
	}
	made := object{
		"id": uuid.NewString(), "project_id": projectID, "name": asked["name"], "prefix": "qk_abcdef", "scopes": asked["scopes"],
		"created_at": now(), "last_used_at": nil, "expires_at": asked["expires_at"], "former_secret_until": nil,
	}
	f.keys[made["id"].(string)] = made
	answer := object{"secret": "qk_" + rand.Text()}
	for name, value := range made {
		answer[name] = value
	}
	return 201, answer
}

func (f *API) listKeys(projectID string, _ *http.Request) (int, any) {
	if f.projects[projectID] == nil {
		return problem(404, "not_found", "No such project.", nil)
	}
	items := []any{}
	for _, key := range f.keys {
		if key["project_id"] == projectID {
			items = append(items, key)
		}
	}
	return 200, object{"items": items, "next_cursor": nil}
}

func (f *API) listServers(name string) (int, any) {
	items := []any{}
	for _, server := range f.servers {
		if name != "" && server["name"] != name {
			continue
		}
		items = append(items, server)
		if drain, ok := server["drain"].(object); ok && server["alive"] == true { // one leaves at each read
			server["replicas"] = max(0, server["replicas"].(int)-1)
			if server["replicas"] == 0 {
				drain["state"], drain["drained_at"] = "drained", now()
			}
		}
	}
	return 200, object{"items": items}
}

func (f *API) byNumber(number string) object {
	for _, server := range f.servers {
		if strconv.Itoa(server["server_id"].(int)) == number {
			return server
		}
	}
	return nil
}

func (f *API) drain(number string, begin bool) (int, any) {
	server := f.byNumber(number)
	if server == nil {
		return problem(404, "not_found", "No such server.", nil)
	}
	if begin && server["drain"] != nil {
		return 200, server
	}
	server["draining"], server["drain"] = begin, nil
	if begin {
		server["drain"] = object{
			"state": "draining", "since": now(), "drained_at": nil, "moving": 1, "waiting": 1, "scarce_resource": nil,
			"message": "Replicas are left.",
		}
	}
	return 200, server
}

func (f *API) giveUp(number string) (int, any) {
	server := f.byNumber(number)
	if server == nil {
		return problem(404, "not_found", "No such server.", nil)
	}
	if server["alive"] == true {
		return problem(409, "server_alive", "It is alive.", nil)
	}
	return remove(f.servers, server["name"].(string))
}

func page(things map[string]object, where, is string) (int, any) {
	items := []any{}
	for _, thing := range things {
		if where == "" || thing[where] == is {
			items = append(items, thing)
		}
	}
	return 200, object{"items": items, "next_cursor": nil}
}

func found(thing object) (int, any) {
	if thing == nil {
		return problem(404, "not_found", "There is no such thing here.", nil)
	}
	return 200, thing
}

func remove(things map[string]object, id string) (int, any) {
	if things[id] == nil {
		return problem(404, "not_found", "There is no such thing here.", nil)
	}
	delete(things, id)
	return 204, nil
}

func price() object {
	return object{"hourly_micros": 1000, "monthly_micros": 730_000, "currency": "EUR", "lines": []any{}, "usage": []any{}}
}

func problem(status int, code, detail string, more object) (int, any) {
	answer := object{
		"type": "http://api/errors/" + code, "title": strings.ReplaceAll(code, "_", " "), "status": status, "detail": detail,
		"code": code, "request_id": "r-1", "retryable": false, "errors": []any{},
	}
	for name, value := range more {
		answer[name] = value
	}
	return status, answer
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }
