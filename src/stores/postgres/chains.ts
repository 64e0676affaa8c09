import { hostname } from 'node:os'
import type { ChainEnd } from '../../core/audit-archive.ts'
import type { Postgres } from './connection.ts'

/** A chain that this replica appends to, and where it ends in the database. */
export interface OwnChain extends ChainEnd {
  readonly id: number
  readonly epoch: number
}

/** Makes this replica known, with the keys that its signatures are checked with. */
export async function introduce(postgres: Postgres, replica: string, publicKeys: string): Promise<void> {
  await postgres.query(
    `INSERT INTO toolway.replicas (id, host, public_keys) VALUES ($1, $2, $3)
     ON CONFLICT (id) DO UPDATE SET host = excluded.host, public_keys = excluded.public_keys, seen_at = now()`,
    [replica, hostname(), publicKeys],
  )
}

/** The newest chain of each lane of this replica. */
export async function ownChains(postgres: Postgres, replica: string): Promise<Map<string, OwnChain>> {
  const rows = await postgres.query<{ lane: string; id: number; epoch: number; seq: string; hash: string }>(
    `SELECT DISTINCT ON (lane) lane, id, epoch, seq, hash FROM toolway.chains WHERE replica = $1
     ORDER BY lane, epoch DESC`,
    [replica],
  )
  return new Map(rows.map(({ lane, seq, ...chain }) => [lane, { ...chain, seq: Number(seq) }]))
}

/** Begins a chain for a lane. Another process of this replica may have been faster: then it is the same one. */
export async function beginChain(postgres: Postgres, replica: string, lane: string, epoch: number): Promise<OwnChain> {
  await postgres.query('INSERT INTO toolway.chains (replica, lane, epoch) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING', [
    replica,
    lane,
    epoch,
  ])
  const chain = (await ownChains(postgres, replica)).get(lane)
  if (!chain) throw new Error(`the chain of lane ${lane} is gone`)
  return chain
}
