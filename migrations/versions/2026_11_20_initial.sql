-- Roles of the processes. They belong to the whole server, so another database may have created them.
DO $$
DECLARE wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['quorate_api', 'quorate_worker'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
    END LOOP;
END $$;

-- The transaction's organization. No rows are visible before it is set.
CREATE FUNCTION current_organization_id() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT NULLIF(current_setting('app.organization_id', true), '')::uuid $$;

CREATE TABLE organizations (
    organization_id uuid PRIMARY KEY,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    created_at timestamptz NOT NULL
);

-- People. Each may belong to several organizations.
CREATE TABLE users (
    id uuid PRIMARY KEY,
    email text NOT NULL UNIQUE CHECK (email = lower(email) AND length(email) <= 254),
    password_hash text NOT NULL,
    created_at timestamptz NOT NULL
);

CREATE TABLE memberships (
    organization_id uuid NOT NULL REFERENCES organizations,
    user_id uuid NOT NULL REFERENCES users,
    role text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'billing', 'viewer')),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, user_id)
);
CREATE INDEX memberships_user ON memberships (user_id);

CREATE TABLE sessions (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    user_id uuid NOT NULL REFERENCES users,
    token_hmac bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX sessions_expiry ON sessions (expires_at);

CREATE TABLE projects (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    created_at timestamptz NOT NULL,
    UNIQUE (organization_id, name),
    UNIQUE (organization_id, id)
);

CREATE TABLE api_keys (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    project_id uuid NOT NULL,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    prefix text NOT NULL,
    secret_hmac bytea NOT NULL UNIQUE,
    scopes text[] NOT NULL,
    created_by uuid NOT NULL REFERENCES users,
    created_at timestamptz NOT NULL,
    last_used_at timestamptz,
    revoked_at timestamptz,
    FOREIGN KEY (organization_id, project_id) REFERENCES projects (organization_id, id)
);
CREATE INDEX api_keys_project ON api_keys (project_id, id);

CREATE TABLE groups (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL,
    project_id uuid NOT NULL,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    -- Intent. `price` is the agreed price, fixed when the group was created.
    sla jsonb NOT NULL,
    demand jsonb NOT NULL,
    price jsonb NOT NULL,
    hourly_micros bigint NOT NULL CHECK (hourly_micros >= 0),
    rate_per_s bigint NOT NULL CHECK (rate_per_s > 0),
    created_at timestamptz NOT NULL,
    delete_requested_at timestamptz,
    -- Observed: the coordinator's last answer.
    status text NOT NULL
        CHECK (status IN ('provisioning', 'active', 'degraded', 'paused', 'lost', 'deleting', 'deleted')),
    epoch bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    replicas jsonb NOT NULL DEFAULT '[]',
    learners jsonb NOT NULL DEFAULT '[]',
    observed_at timestamptz,
    -- The reservation is owed from admission to the request to delete.
    active_at timestamptz,
    deleted_at timestamptz,
    row_version bigint NOT NULL DEFAULT 1,
    FOREIGN KEY (organization_id, project_id) REFERENCES projects (organization_id, id),
    UNIQUE (organization_id, id),
    CHECK ((status = 'deleted') = (deleted_at IS NOT NULL)),
    CHECK (deleted_at IS NULL OR delete_requested_at IS NOT NULL)
);
CREATE UNIQUE INDEX groups_name ON groups (project_id, name) WHERE deleted_at IS NULL;
CREATE INDEX groups_project ON groups (project_id, id);
CREATE INDEX groups_unsettled ON groups (created_at) WHERE status IN ('provisioning', 'deleting');

CREATE TABLE group_events (
    -- The coordinator's number. Negative ones are the API's own.
    seq bigint NOT NULL,
    organization_id uuid NOT NULL,
    group_id uuid NOT NULL,
    at timestamptz NOT NULL,
    kind text NOT NULL,
    epoch bigint,
    status text,
    server_id bigint,
    message text NOT NULL,
    PRIMARY KEY (group_id, seq),
    FOREIGN KEY (organization_id, group_id) REFERENCES groups (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX group_events_recent ON group_events (group_id, at DESC, seq DESC);

-- Number of the last applied event of the coordinator. It changes in the same transaction as the event's effect.
CREATE TABLE coordinator_cursor (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    applied_seq bigint NOT NULL CHECK (applied_seq >= 0)
);
INSERT INTO coordinator_cursor (applied_seq) VALUES (0);

-- docs/internals/telemetry.md: counters only ever grow, so the greatest value is the newest.
CREATE TABLE usage_windows (
    organization_id uuid NOT NULL,
    group_id uuid NOT NULL,
    server_id bigint NOT NULL,
    incarnation text NOT NULL,
    epoch bigint NOT NULL,
    window_start_s bigint NOT NULL CHECK (window_start_s % 60 = 0),
    role text NOT NULL CHECK (role IN ('head', 'follower', 'tail', 'learner', 'sole')),
    committed_entries bigint NOT NULL CHECK (committed_entries >= 0),
    committed_bytes bigint NOT NULL CHECK (committed_bytes >= 0),
    first_committed_entries bigint NOT NULL CHECK (first_committed_entries >= 0),
    first_committed_bytes bigint NOT NULL CHECK (first_committed_bytes >= 0),
    offered_entries bigint NOT NULL CHECK (offered_entries >= 0),
    throttled_entries bigint NOT NULL CHECK (throttled_entries >= 0),
    throttled_within_sla_entries bigint NOT NULL CHECK (throttled_within_sla_entries >= 0),
    refused_entries bigint NOT NULL CHECK (refused_entries >= 0),
    read_entries bigint NOT NULL CHECK (read_entries >= 0),
    read_bytes bigint NOT NULL CHECK (read_bytes >= 0),
    active_ms bigint NOT NULL CHECK (active_ms >= 0),
    paused_ms bigint NOT NULL CHECK (paused_ms >= 0),
    stored_bytes bigint NOT NULL CHECK (stored_bytes >= 0),
    latency_count bigint NOT NULL CHECK (latency_count >= 0),
    latency_us jsonb NOT NULL,
    PRIMARY KEY (group_id, server_id, incarnation, epoch, window_start_s),
    FOREIGN KEY (organization_id, group_id) REFERENCES groups (organization_id, id)
);
CREATE INDEX usage_windows_time ON usage_windows (group_id, window_start_s);

-- Answers to POST requests, by principal and key. The answer is sealed with a key that needs the client's own
-- Idempotency-Key, so that a secret shown once is not readable here.
CREATE TABLE idempotency_keys (
    id uuid PRIMARY KEY,
    principal text NOT NULL,
    key_hmac bytea NOT NULL,
    fingerprint bytea NOT NULL,
    locked_until timestamptz NOT NULL,
    answer bytea,
    created_at timestamptz NOT NULL,
    UNIQUE (principal, key_hmac)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

CREATE TABLE quota_overrides (
    organization_id uuid NOT NULL REFERENCES organizations,
    code text NOT NULL,
    limit_value bigint NOT NULL CHECK (limit_value >= 0),
    PRIMARY KEY (organization_id, code)
);

-- The row lock on this counter makes numbers gapless: a number is taken in the transaction that uses it.
CREATE TABLE invoice_counters (
    organization_id uuid PRIMARY KEY REFERENCES organizations,
    last_sequence bigint NOT NULL CHECK (last_sequence >= 0)
);

CREATE TABLE invoices (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    kind text NOT NULL CHECK (kind IN ('invoice', 'credit_note')),
    sequence bigint NOT NULL CHECK (sequence > 0),
    number text NOT NULL,
    period_start timestamptz NOT NULL,
    period_end timestamptz NOT NULL CHECK (period_end > period_start),
    currency text NOT NULL CHECK (currency = 'USD'),
    total_micros bigint NOT NULL CHECK ((kind = 'invoice') = (total_micros >= 0)),
    corrects_invoice_id uuid REFERENCES invoices,
    issued_at timestamptz NOT NULL,
    UNIQUE (organization_id, sequence),
    UNIQUE (organization_id, kind, period_start),
    UNIQUE (organization_id, id),
    CHECK ((kind = 'credit_note') = (corrects_invoice_id IS NOT NULL))
);

CREATE TABLE invoice_lines (
    organization_id uuid NOT NULL,
    invoice_id uuid NOT NULL,
    position integer NOT NULL,
    group_id uuid NOT NULL,
    group_name text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('reservation', 'appends', 'reads', 'storage', 'sla_credit')),
    description text NOT NULL,
    quantity bigint NOT NULL CHECK (quantity >= 0),
    unit text NOT NULL,
    price_quantity bigint NOT NULL CHECK (price_quantity > 0),
    unit_price_micros bigint NOT NULL,
    amount_micros bigint NOT NULL,
    PRIMARY KEY (invoice_id, position),
    FOREIGN KEY (organization_id, invoice_id) REFERENCES invoices (organization_id, id),
    FOREIGN KEY (organization_id, group_id) REFERENCES groups (organization_id, id)
);
CREATE INDEX invoice_lines_group ON invoice_lines (group_id);

-- Double entry: the entries of one invoice add up to zero (checked when the transaction commits).
CREATE TABLE ledger_entries (
    organization_id uuid NOT NULL,
    invoice_id uuid NOT NULL,
    account text NOT NULL,
    amount_micros bigint NOT NULL, -- positive: debit; negative: credit
    created_at timestamptz NOT NULL,
    PRIMARY KEY (invoice_id, account),
    FOREIGN KEY (organization_id, invoice_id) REFERENCES invoices (organization_id, id)
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is immutable: correct it with a credit note', TG_TABLE_NAME;
END $$;
CREATE TRIGGER immutable BEFORE UPDATE OR DELETE OR TRUNCATE ON invoices
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER immutable BEFORE UPDATE OR DELETE OR TRUNCATE ON invoice_lines
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER immutable BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE FUNCTION check_invoice_adds_up() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    checked uuid;
BEGIN
    IF TG_TABLE_NAME = 'invoices' THEN checked := NEW.id; ELSE checked := NEW.invoice_id; END IF;
    IF (SELECT COALESCE(sum(amount_micros), 0) FROM ledger_entries WHERE invoice_id = checked) <> 0 THEN
        RAISE EXCEPTION 'the ledger entries of invoice % do not add up to zero', checked;
    END IF;
    IF (SELECT COALESCE(sum(amount_micros), 0) FROM invoice_lines WHERE invoice_id = checked)
        <> (SELECT total_micros FROM invoices WHERE id = checked) THEN
        RAISE EXCEPTION 'the lines of invoice % do not add up to its total', checked;
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER adds_up AFTER INSERT ON invoices
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_invoice_adds_up();
CREATE CONSTRAINT TRIGGER adds_up AFTER INSERT ON invoice_lines
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_invoice_adds_up();
CREATE CONSTRAINT TRIGGER adds_up AFTER INSERT ON ledger_entries
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_invoice_adds_up();

-- Row-level security on every table of an organization. The worker serves all organizations.
DO $$
DECLARE owned text;
BEGIN
    FOR owned IN
        SELECT c.table_name FROM information_schema.columns c
        WHERE c.table_schema = current_schema() AND c.column_name = 'organization_id'
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', owned);
        EXECUTE format(
            'CREATE POLICY own_organization ON %I TO quorate_api USING (organization_id = current_organization_id())',
            owned);
        EXECUTE format('CREATE POLICY every_organization ON %I TO quorate_worker USING (true)', owned);
    END LOOP;
END $$;

-- These functions identify the caller before the organization is known. There is no other way.
CREATE FUNCTION find_session(wanted bytea)
    RETURNS TABLE (id uuid, organization_id uuid, user_id uuid, expires_at timestamptz, role text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT s.id, s.organization_id, s.user_id, s.expires_at, m.role
    FROM sessions s JOIN memberships m USING (organization_id, user_id) WHERE s.token_hmac = wanted $$;
CREATE FUNCTION find_api_key(wanted bytea)
    RETURNS TABLE (id uuid, organization_id uuid, project_id uuid, scopes text[], revoked_at timestamptz,
                   last_used_at timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT k.id, k.organization_id, k.project_id, k.scopes, k.revoked_at, k.last_used_at
    FROM api_keys k WHERE k.secret_hmac = wanted $$;
CREATE FUNCTION find_memberships(wanted uuid)
    RETURNS TABLE (organization_id uuid, role text, created_at timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT m.organization_id, m.role, m.created_at FROM memberships m WHERE m.user_id = wanted $$;
REVOKE EXECUTE ON FUNCTION find_session, find_api_key, find_memberships FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_session, find_api_key, find_memberships TO quorate_api;

GRANT SELECT, INSERT ON organizations, users, memberships, projects TO quorate_api;
GRANT UPDATE ON organizations, users TO quorate_api;
GRANT SELECT, INSERT, DELETE ON sessions TO quorate_api;
GRANT SELECT, INSERT, UPDATE ON api_keys TO quorate_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON groups, idempotency_keys TO quorate_api;
GRANT SELECT, INSERT ON group_events TO quorate_api;
GRANT SELECT ON usage_windows, quota_overrides, invoices, invoice_lines, coordinator_cursor TO quorate_api;

GRANT SELECT ON organizations, projects, quota_overrides TO quorate_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON groups TO quorate_worker;
GRANT SELECT, INSERT ON group_events TO quorate_worker;
GRANT SELECT, UPDATE ON coordinator_cursor TO quorate_worker;
GRANT SELECT, INSERT, UPDATE ON usage_windows, invoice_counters TO quorate_worker;
GRANT SELECT, INSERT ON invoices, invoice_lines, ledger_entries TO quorate_worker;
GRANT SELECT, DELETE ON sessions, idempotency_keys TO quorate_worker;
GRANT SELECT ON alembic_version TO quorate_api, quorate_worker;
