/** A step from one form of the database to the next. One that was published is never changed. */
export interface Migration {
  readonly number: number
  readonly name: string
  readonly sql: string
}

/**
 * `records` has each line as it was written, and beside it what it is found by. `shown` marks what stands for an
 * operation: its end, or its beginning as long as there is no end; `begin_seq` and `begin_time` lead from an end to its
 * beginning. `position` is the one order over all replicas, in which records arrived.
 *
 * A unique key of a partitioned table has to hold what it is partitioned by; that (chain, seq) alone is unique is seen to
 * by whoever appends, under the lock of the row in `chains`. No index holds `tool`: it may be a URI, too long for one.
 */
const auditTables = `
  CREATE TABLE toolway.replicas (
    id uuid PRIMARY KEY,
    host text NOT NULL,
    public_keys text NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE TABLE toolway.chains (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    replica uuid NOT NULL REFERENCES toolway.replicas,
    lane text NOT NULL,
    epoch integer NOT NULL,
    seq bigint NOT NULL DEFAULT 0,
    hash text NOT NULL DEFAULT '',
    removed_to bigint NOT NULL DEFAULT 0,
    UNIQUE (replica, lane, epoch)
  );
  CREATE SEQUENCE toolway.position;
  CREATE TABLE toolway.records (
    position bigint NOT NULL DEFAULT nextval('toolway.position'),
    chain integer NOT NULL,
    seq bigint NOT NULL,
    time timestamptz NOT NULL,
    phase text,
    shown boolean NOT NULL,
    begin_seq bigint,
    begin_time timestamptz,
    operation text, call text, parent text, agent text, principal text, server text, tool text,
    decision text, reason text, code text,
    is_error boolean NOT NULL,
    words text NOT NULL,
    line text NOT NULL,
    PRIMARY KEY (chain, seq, time)
  ) PARTITION BY RANGE (time);
  CREATE TABLE toolway.records_other PARTITION OF toolway.records DEFAULT;
  CREATE INDEX records_position ON toolway.records (position);
  CREATE INDEX records_time ON toolway.records (time, chain, seq) WHERE shown;
  CREATE INDEX records_call ON toolway.records (call);
  CREATE INDEX records_agent ON toolway.records (agent, time) WHERE shown;
  CREATE INDEX records_server ON toolway.records (server, time) WHERE shown;
  CREATE INDEX records_refused ON toolway.records (decision, time) WHERE shown AND decision <> 'ALLOW';
  CREATE TABLE toolway.checkpoints (
    chain integer NOT NULL REFERENCES toolway.chains,
    seq bigint NOT NULL,
    time timestamptz NOT NULL,
    line text NOT NULL,
    PRIMARY KEY (chain, seq)
  );
`

export const migrations: readonly Migration[] = [{ number: 1, name: 'audit', sql: auditTables }]
